package postgres

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// reply is the rows of the SQL type reply, to an acquire or a turn.
type reply struct {
	header        header
	claims        []core.Claim
	orphans       []core.Claim
	cancellations []ports.Cancellation
}

// header is what a reply says besides its jobs. Places are positions in the request,
// from 1.
type header struct {
	status     status
	repeated   bool // the turn had been carried out before
	paused     bool
	last       int64
	now        core.Instant
	remaining  time.Duration
	head       core.Head
	leaseToken int64
	leaseOwner string
	skipped    []int32
	deferred   []int32
	notBegun   []int32
}

// The kinds of rows.
const (
	headerKind       = 'h'
	claimKind        = 'c'
	orphanKind       = 'o'
	cancellationKind = 'x'
)

// read reads a whole reply, from the beginning if it is called again. Each kind of row is
// scanned into its own columns.
func (r *reply) read(rows pgx.Rows) error {
	*r = reply{}
	var (
		head  headerRow
		claim claimRow
	)
	intoHead, intoClaim, intoCancellation := head.columns(), claim.columns(), claim.cancellationColumns()
	for rows.Next() {
		kind := rows.RawValues()[0][0] // "char" is one byte in either format
		into := intoClaim
		switch kind {
		case headerKind:
			into = intoHead
		case cancellationKind:
			into = intoCancellation
		default:
			claim.reset()
		}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		switch kind {
		case headerKind:
			r.header = head.header()
		case claimKind:
			r.claims = append(r.claims, claim.whole())
		case orphanKind:
			r.orphans = append(r.orphans, claim.whole())
		case cancellationKind:
			r.cancellations = append(r.cancellations,
				ports.Cancellation{ID: claim.claim.ID, Receipt: claim.claim.Receipt, Drop: claim.dropJob})
		}
	}
	return nil
}

// replyColumns is how many columns the type reply has, and statusColumn the position of
// the first that belongs to headers.
const (
	replyColumns = 29
	statusColumn = 17
)

// headerRow is a header as it is scanned.
type headerRow struct {
	h         header
	remaining int64
	head      *int64
}

func (r *headerRow) columns() []any {
	into := make([]any, replyColumns)
	copy(into[statusColumn:], []any{
		&r.h.status, &r.h.repeated, &r.h.paused, &r.h.last, &r.h.now, &r.remaining, &r.head,
		&r.h.leaseToken, &r.h.leaseOwner, &r.h.skipped, &r.h.deferred, &r.h.notBegun,
	})
	return into
}

func (r *headerRow) header() header {
	h := r.h
	h.remaining = micros(r.remaining)
	h.head = headOf(r.head)
	return h
}

// headOf returns a head as a function returns it, NULL for none.
func headOf(due *int64) core.Head {
	if due == nil {
		return core.Head{}
	}
	return core.Head{Due: core.Instant(*due), OK: true}
}

// claimRow is a claim, an orphan or a cancellation as it is scanned.
type claimRow struct {
	claim              core.Claim
	first              core.Payload
	moreScores         []float64
	moreData, moreMeta [][]byte
	dropJob            bool
}

// reset drops what the row before has left, which the claim made of it holds.
func (r *claimRow) reset() { *r = claimRow{} }

func (r *claimRow) columns() []any {
	into := make([]any, replyColumns)
	copy(into[1:], []any{
		&r.claim.ID, &r.claim.Receipt.Token, &r.claim.Receipt.Number,
		&r.claim.PerformAt, &r.claim.FirstPush, &r.claim.RetryCount, &r.claim.Recoveries, &r.claim.Begun, &r.claim.Error,
		&r.first.Score, &r.first.Data, &r.first.Meta, &r.moreScores, &r.moreData, &r.moreMeta,
	})
	return into
}

func (r *claimRow) cancellationColumns() []any {
	into := make([]any, replyColumns)
	copy(into[1:], []any{&r.claim.ID, &r.claim.Receipt.Token, &r.claim.Receipt.Number})
	into[statusColumn-1] = &r.dropJob
	return into
}

// whole returns the row as a claim.
func (r *claimRow) whole() core.Claim {
	c := r.claim
	c.Payloads = make([]core.Payload, 1, 1+len(r.moreData))
	c.Payloads[0] = r.first
	for i, data := range r.moreData {
		c.Payloads = append(c.Payloads, core.Payload{Data: data, Score: r.moreScores[i], Meta: r.moreMeta[i]})
	}
	return c
}

func sortClaims(list []core.Claim, order func(a, b core.Claim) int) { slices.SortFunc(list, order) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
