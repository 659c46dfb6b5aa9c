package record

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// receiptBytes is the length of a stored receipt: token and number.
const receiptBytes = 16

// ReceiptText returns a receipt as it is stored.
func ReceiptText(m core.Receipt) []byte { return appendReceipt(make([]byte, 0, receiptBytes), m) }

// appendReceipt appends a receipt as it is stored.
func appendReceipt(b []byte, m core.Receipt) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(m.Token))
	return binary.BigEndian.AppendUint64(b, uint64(m.Number))
}

func (s *decoder) receipt() core.Receipt {
	return core.Receipt{Token: int64(s.number(8)), Number: int64(s.number(8))}
}

// Claimer returns the claimant as each claim of a turn stores it: owner and node, after their
// length in bytes.
func Claimer(r *ports.TurnRequest) (string, error) {
	b := binary.AppendUvarint(make([]byte, 2), uint64(len(r.Lease.Owner)))
	b = append(b, r.Lease.Owner...)
	b = binary.AppendUvarint(b, uint64(len(r.Node)))
	b = append(b, r.Node...)
	if len(b) > 1<<12 {
		return "", fmt.Errorf("%w: the server's owner id and name have %d bytes together; use shorter ones",
			ports.ErrInvalidRequest, len(b))
	}
	binary.BigEndian.PutUint16(b, uint16(len(b)-2))
	return string(b), nil
}

// readClaimer reads the result of Claimer, without its length.
func readClaimer(text string, v *ports.ClaimView) error {
	remaining := []byte(text)
	for _, field := range []*string{&v.Owner, &v.Node} {
		n, size := binary.Uvarint(remaining)
		if size <= 0 || n > uint64(len(remaining)-size) {
			return ErrStored
		}
		*field = string(remaining[size : size+int(n)])
		remaining = remaining[size+int(n):]
	}
	if len(remaining) > 0 {
		return ErrStored
	}
	return nil
}

// storedClaim is a claim as it is stored; see lua/turn/turn.lua.
type storedClaim struct {
	core.Claim
	since core.Instant
	// by is the claimant, as readClaimer takes it.
	by string
}

func readClaim(id, text string) (storedClaim, error) {
	s := decoder{rest: text}
	c := storedClaim{
		Claim: core.Claim{Receipt: s.receipt(), Begun: s.number(1) == 1},
		since: core.Instant(s.number(7)),
		by:    s.sized(2),
	}
	var err error
	c.Job, err = s.job(id, s.instant())
	return c, err
}

// ParseClaim reads a stored claim for inspection.
func ParseClaim(id, text string) (ports.ClaimView, error) {
	c, err := readClaim(id, text)
	if err != nil {
		return ports.ClaimView{}, err
	}
	v := ports.ClaimView{Claim: c.Claim, Since: c.since, Count: len(c.Payloads)}
	if err := readClaimer(c.by, &v); err != nil {
		v.Owner, v.Node = "", "" // the job can be read all the same
	}
	return v, nil
}

// ParseClaims reads ids and claims.
func ParseClaims(r *Reply) ([]core.Claim, error) {
	if len(r.values) == 0 {
		return nil, r.Err()
	}
	claims := make([]core.Claim, 0, len(r.values)/2)
	for r.More() {
		c, err := readClaim(r.Text(), r.Text())
		if err != nil {
			return nil, err
		}
		claims = append(claims, c.Claim)
	}
	return claims, r.Err()
}

// AddMarks sets the marks of claims to their scores, as mark_reader in lua/lib/past.lua returns them.
func AddMarks(claims []core.Claim, r *Reply) {
	for i := range claims {
		s := decoder{rest: r.Text()}
		if s.rest != "" {
			claims[i].Mark = core.MarkAt(s.double())
		}
	}
}

// parseCancel reads a stored cancel; see lua/step/cancel.lua.
func parseCancel(id, text string) (ports.Cancellation, error) {
	s := decoder{rest: text}
	c := ports.Cancellation{ID: id, Receipt: s.receipt(), Drop: s.take(1) == "1"}
	if s.bad || s.rest != "" {
		return ports.Cancellation{}, ErrStored
	}
	return c, nil
}

// ParseCancels reads ids and cancels, and sorts them by id.
func ParseCancels(r *Reply) ([]ports.Cancellation, error) {
	var cancels []ports.Cancellation
	for r.More() {
		c, err := parseCancel(r.Text(), r.Text())
		if err != nil {
			return nil, err
		}
		cancels = append(cancels, c)
	}
	slices.SortFunc(cancels, func(a, b ports.Cancellation) int { return strings.Compare(a.ID, b.ID) })
	return cancels, r.Err()
}
