package postgres

import (
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// reply is the rows of the SQL type reply, to an acquire or a turn.
type reply struct {
	header        header
	claims        []core.Claim
	orphans       []core.Claim
	cancellations []ports.Cancellation
	// Places of the request, from 1.
	skipped, deferred, skippedParts, notBegun []int32
}

// header is the part of a reply besides its jobs.
type header struct {
	status     status
	paused     bool
	last       int64
	now        core.Instant
	remaining  time.Duration
	head       core.Head
	leaseToken int64
	leaseOwner string
}

// The kinds of rows.
const (
	headerKind    = 'h'
	claimKind     = 'c'
	orphanKind    = 'o'
	cancelledKind = 'x'
	droppedKind   = 'd' // a cancelled claim whose job is dropped when it ends
	skippedKind   = 's'
	deferredKind  = 'f'
	partKind      = 'p'
	notBegunKind  = 'n'
)

// read reads a whole reply, from the beginning if it is called again. Each kind of row is
// scanned into its own columns.
func (r *reply) read(rows pgx.Rows) error {
	*r = reply{}
	var row replyRow
	header, claim, ref, places := row.headerColumns(), row.claimColumns(), row.refColumns(), row.placesColumns()

	for rows.Next() {
		row = replyRow{}
		kind := rows.RawValues()[0][0] // "char" is one byte in either format
		into := claim
		switch kind {
		case headerKind:
			into = header
		case cancelledKind, droppedKind:
			into = ref
		case skippedKind, deferredKind, partKind, notBegunKind:
			into = places
		}

		if err := rows.Scan(into...); err != nil {
			return err
		}
		r.add(kind, &row)
	}
	return nil
}

// add adds a row of a kind.
func (r *reply) add(kind byte, row *replyRow) {
	switch kind {
	case headerKind:
		r.header = row.header()
	case claimKind:
		r.claims = append(r.claims, row.whole())
	case orphanKind:
		r.orphans = append(r.orphans, row.whole())
	case cancelledKind, droppedKind:
		r.cancellations = append(r.cancellations,
			ports.Cancellation{ID: row.claim.ID, Receipt: row.claim.Receipt, Drop: kind == droppedKind})
	case skippedKind:
		r.skipped = row.places
	case deferredKind:
		r.deferred = row.places
	case partKind:
		r.skippedParts = row.places
	case notBegunKind:
		r.notBegun = row.places
	}
}

// The columns of the type reply: how many there are, and where those of a kind begin.
const (
	replyColumns = 25
	idColumn     = 1
	placesColumn = 16
	statusColumn = 17
)

// replyRow is a row as it is scanned, each kind into the columns that it has.
type replyRow struct {
	h         header
	remaining int64
	head      *int64

	claim              core.Claim
	first              core.Payload
	moreScores         []float64
	moreData, moreMeta [][]byte

	places []int32
}

func columnsFrom(first int, into ...any) []any {
	all := make([]any, replyColumns) // columns that are nil are not scanned
	copy(all[first:], into)
	return all
}

func (r *replyRow) headerColumns() []any {
	return columnsFrom(statusColumn,
		&r.h.status, &r.h.paused, &r.h.last, &r.h.now, &r.remaining, &r.head, &r.h.leaseToken, &r.h.leaseOwner)
}

func (r *replyRow) refColumns() []any {
	return columnsFrom(idColumn, &r.claim.ID, &r.claim.Receipt.Token, &r.claim.Receipt.Number)
}

func (r *replyRow) claimColumns() []any {
	return columnsFrom(idColumn, &r.claim.ID, &r.claim.Receipt.Token, &r.claim.Receipt.Number,
		&r.claim.PerformAt, &r.claim.FirstPush, &r.claim.RetryCount, &r.claim.Recoveries,
		&r.claim.Begun, &r.claim.Error,
		&r.first.Score, &r.first.Data, &r.first.Meta, &r.moreScores, &r.moreData, &r.moreMeta)
}

func (r *replyRow) placesColumns() []any { return columnsFrom(placesColumn, &r.places) }

func (r *replyRow) header() header {
	h := r.h
	h.remaining = micros(r.remaining)
	h.head = newHead(r.head)
	return h
}

// newHead returns a head as functions return it, with NULL for none.
func newHead(due *int64) core.Head {
	if due == nil {
		return core.Head{}
	}
	return core.Head{Due: core.Instant(*due), OK: true}
}

// whole returns the row as a claim.
func (r *replyRow) whole() core.Claim {
	c := r.claim
	c.Tags, c.Error = storekit.CutTags(c.Error)
	c.Payloads = make([]core.Payload, 1, 1+len(r.moreData))
	c.Payloads[0] = r.first
	for i, data := range r.moreData {
		c.Payloads = append(c.Payloads, core.Payload{Data: data, Score: r.moreScores[i], Meta: r.moreMeta[i]})
	}
	return c
}

func sortClaims(list []core.Claim, order func(a, b core.Claim) int) { slices.SortFunc(list, order) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
