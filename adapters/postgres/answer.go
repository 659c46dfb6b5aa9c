package postgres

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// header is what a reply says besides its jobs.
type header struct {
	// repeated says that the turn had been carried out before.
	repeated  bool
	status    status
	last      int64
	now       core.Instant
	remaining time.Duration
	head      core.Head
	paused    bool
	skipped   []int32
	held      []int32
	token     int64
	owner     string
}

// answer is the rows of the type reply.
type answer struct {
	header  header
	claims  []core.Claim
	orphans []core.Claim
	cancels []ports.Cancellation
	// notBegun are places in the request, from 1.
	notBegun []int32
}

// The kinds of rows.
const (
	headerRow int16 = iota
	claimRow
	orphanRow
	cancelRow
	repeatedRow
	begunClaimRow
	begunOrphanRow
	notBegunRow
)

// row is one row of the type reply, as it is scanned.
type row struct {
	kind                int16
	claim               core.Claim
	first               core.Payload
	retries, recoveries int32
	moreScores          []float64
	moreData, moreMeta  [][]byte
	skipped, held       []int32
	since               int64
	owner               string
}

// read takes a whole reply, from the beginning if it is called again.
func (a *answer) read(rows pgx.Rows) error {
	*a = answer{}
	var r row
	into := []any{
		&r.kind, &r.claim.ID, &r.claim.Receipt.Token, &r.claim.Receipt.Number, &r.claim.PerformAt, &r.claim.FirstPush,
		&r.retries, &r.recoveries, &r.claim.Error, &r.first.Score, &r.first.Data, &r.first.Meta,
		&r.moreScores, &r.moreData, &r.moreMeta, &r.skipped, &r.held, &r.since, &r.owner,
	}
	for rows.Next() {
		r = row{}
		if err := rows.Scan(into...); err != nil {
			return err
		}
		switch r.kind {
		case headerRow, repeatedRow:
			a.header = r.header()
		case claimRow, begunClaimRow:
			a.claims = append(a.claims, r.whole())
		case orphanRow, begunOrphanRow:
			a.orphans = append(a.orphans, r.whole())
		case notBegunRow:
			a.notBegun = r.skipped
		case cancelRow:
			a.cancels = append(a.cancels, ports.Cancellation{ID: r.claim.ID, Receipt: r.claim.Receipt, Drop: r.recoveries != 0})
		}
	}
	return nil
}

// header is the row as the reply's header; the type reply says which column is
// which.
func (r *row) header() header {
	h := header{
		repeated: r.kind == repeatedRow, status: status(r.retries), last: r.claim.Receipt.Token, now: core.Instant(r.claim.Receipt.Number),
		remaining: micros(int64(r.claim.PerformAt)), paused: r.recoveries != 0,
		skipped: r.skipped, held: r.held, token: r.since, owner: r.owner,
	}
	if r.claim.FirstPush >= 0 {
		h.head = core.Head{Due: r.claim.FirstPush, OK: true}
	}
	return h
}

// whole is the row as a claim.
func (r *row) whole() core.Claim {
	c := r.claim
	c.RetryCount, c.Recoveries = int(r.retries), int(r.recoveries)
	c.Begun = r.kind == begunClaimRow || r.kind == begunOrphanRow
	c.Payloads = make([]core.Payload, 1, 1+len(r.moreData))
	c.Payloads[0] = r.first
	for i, data := range r.moreData {
		c.Payloads = append(c.Payloads, core.Payload{Data: data, Score: r.moreScores[i], Meta: r.moreMeta[i]})
	}
	return c
}

func sortClaims(list []core.Claim, order func(a, b core.Claim) int) { slices.SortFunc(list, order) }
