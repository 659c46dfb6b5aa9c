package postgres

import (
	"cmp"
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// turnArgs is how many parameters wholeTurnSQL has.
const turnArgs = 34

// Most turns are usual, as the function turn has it. Others need twice as many
// parameters, of which each takes its time.
const (
	turnSQL      = `SELECT * FROM {schema}.turn($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`
	wholeTurnSQL = `SELECT * FROM {schema}.whole_turn($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12,
  $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32, $33, $34)`
)

// Turn implements ports.Consumer. A settlement whose job a caller's transaction is
// settling is held. The turn is sent again only where the server says that it has rolled
// it back, or where it was not sent at all: of any other error the outcome is unknown,
// and only the caller may repeat the turn, since the reply to a repeat tells less.
func (s *Store) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	if err := r.Validate(); err != nil {
		return ports.TurnReply{}, err
	}
	settled := newSettled(r.Settlements)
	budget := r.Budget()
	args := append(make([]any, 0, turnArgs),
		r.Lease.Shard.Queue, index(r.Lease.Shard), r.Lease.Owner, r.Lease.Token, r.Number, r.TTL.Microseconds(), s.now(),
		int32(max(0, min(budget.Jobs, core.MaxTurnJobs))), atMost(budget.PerJob, core.MaxTurnPayloads),
		atMost(budget.Bytes, core.DefaultTurnBytes), r.Node, int64(r.Lane))
	template := turnSQL
	args = append(args, settled.marks()...)
	if !settled.plain() || r.Stats != nil || r.Resent || len(r.Begin) > 0 {
		template = wholeTurnSQL
		args = append(args, settled.fates()...)
		args = append(args, statsArgs(r.Stats)...)
		args = append(args, r.Resent)
		args = append(args, beginArgs(r.Begin)...)
	}
	var a answer
	err := s.query(ctx, ifRefused, a.read, template, args...)
	h := &a.header
	if err == nil {
		err = turnError(h, &r)
	}
	if err != nil {
		s.near.set(r.Lease.Shard, false)
		return ports.TurnReply{}, err
	}
	s.claimed(len(a.claims))
	sortClaims(a.claims, byTime)
	sortClaims(a.orphans, byID)
	reply := ports.TurnReply{
		Last: h.last, Repeat: h.repeated, Now: h.now, Remaining: h.remaining, Claims: a.claims, Orphans: a.orphans,
		Head: h.head, Paused: h.paused, Cancellations: a.cancels,
	}
	if !h.repeated {
		reply.Skipped, reply.Deferred = settled.skipped(h.skipped), settled.places(h.held)
		for _, place := range a.notBegun {
			reply.NotBegun = append(reply.NotBegun, int(place)-1)
		}
	}
	s.near.saw(r.Lease.Shard, &reply)
	return reply, nil
}

func byTime(a, b core.Claim) int {
	return cmp.Or(cmp.Compare(a.PerformAt, b.PerformAt), byID(a, b))
}

// turnError is the port's error for a turn that was refused.
func turnError(h *header, r *ports.TurnRequest) error {
	shard := r.Lease.Shard
	switch h.status {
	case leaseLost:
		return fmt.Errorf("%w: turn %d of %v by %q under token %d; acquire it again",
			ports.ErrLeaseLost, r.Number, shard, r.Lease.Owner, r.Lease.Token)
	case staleTurn:
		return fmt.Errorf("%w: turn %d of %v after turn %d; drop it", ports.ErrStaleTurn, r.Number, shard, h.last)
	}
	return h.status.err(shard)
}

// atMost is a limit with its default.
func atMost(limit, fallback int) int64 {
	if limit <= 0 {
		return int64(fallback)
	}
	return int64(limit)
}

// statsArgs are statistics as parameters, NULL for none.
func statsArgs(st *core.Stats) []any {
	if st == nil {
		return []any{nil, nil, nil, nil}
	}
	return []any{int64(st.Processed), int64(st.Failed), buckets(&st.Wait), buckets(&st.Run)}
}

// beginArgs are claims as parameters, NULL for none.
func beginArgs(refs []core.ClaimRef) []any {
	if len(refs) == 0 {
		return []any{nil, nil, nil}
	}
	ids, tokens, numbers := make([]string, len(refs)), make([]int64, len(refs)), make([]int64, len(refs))
	for i, ref := range refs {
		ids[i], tokens[i], numbers[i] = ref.ID, ref.Receipt.Token, ref.Receipt.Number
	}
	return []any{ids, tokens, numbers}
}

// buckets are a histogram's counts without the zeros at its end, which are most.
func buckets(h *core.Histogram) []int64 {
	n := len(h)
	for n > 0 && h[n-1] == 0 {
		n--
	}
	counts := make([]int64, n)
	for i := range counts {
		counts[i] = int64(h[i])
	}
	return counts
}
