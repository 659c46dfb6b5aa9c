package postgres

import (
	"cmp"
	"context"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// turnArgs is how many parameters turnSQL has.
const turnArgs = 29

// Most turns are usual, as described in the function turn_fast. Others need twice as many
// parameters, and each parameter costs time.
const (
	turnFastSQL = `SELECT * FROM {schema}.turn_fast(p_queue => $1, p_index => $2, p_owner => $3, p_token => $4,
  p_number => $5, p_ttl => $6, p_now => $7,
  p_want => $8, p_per_job => $9, p_bytes => $10, p_node => $11,
  p_settle_ids => $12, p_settle_tokens => $13, p_settle_numbers => $14)`
	turnSQL = `SELECT * FROM {schema}.turn(p_queue => $1, p_index => $2, p_owner => $3, p_token => $4, p_number => $5,
  p_ttl => $6, p_now => $7, p_want => $8, p_per_job => $9, p_bytes => $10, p_node => $11,
  p_settle_ids => $12, p_settle_tokens => $13, p_settle_numbers => $14,
  p_settlements => $15::text::json,
  p_resent => $16, p_begin_ids => $17, p_begin_tokens => $18, p_begin_numbers => $19,
  p_part_ids => $20, p_part_tokens => $21, p_part_numbers => $22, p_part_positions => $23,
  p_part_retry_counts => $24, p_part_recoveries => $25, p_part_marks => $26,
  p_keep_age => $27, p_keep_count => $28, p_keep_bytes => $29)`
	turnClaimsSQL = `SELECT * FROM {schema}.turn_claims(p_queue => $1, p_index => $2, p_token => $3, p_number => $4)`
)

// Turn implements [ports.Consumer]. It defers the settlement of a job that a caller's transaction
// is settling. It sends the turn again only if the server has rolled it back, or if the turn was
// not sent at all. After any other error the outcome is unknown, and only the caller may repeat the
// turn, since the reply to a repeat has less information.
func (s *Store) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	if err := r.Validate(); err != nil {
		return ports.TurnReply{}, err
	}

	recorded, parts := r.Recorded()
	settlements := newSettlementColumns(recorded)
	template, args, err := s.turnCall(&r, settlements, parts)
	if err != nil {
		return ports.TurnReply{}, err
	}
	var got reply
	err = s.query(ctx, ifRolledBack, got.read, template, args...)

	h := &got.header
	if err == nil {
		err = turnError(h, &r)
	}
	if err == nil && r.Resent {
		err = s.readClaims(ctx, &r, &got)
	}
	claims, orphans := got.split(r.Lease.Token)
	if err == nil && r.Marks {
		err = s.readMarks(ctx, r.Lease.Shard, claims)
	}
	if err != nil {
		s.idle.set(r.Lease.Shard, false)
		return ports.TurnReply{}, err
	}

	s.countClaims(len(claims))
	sortClaims(claims, byTime)
	sortClaims(orphans, byID)

	repeated := h.Status == statusRepeated
	reply := ports.TurnReply{
		Last:          h.Last,
		Repeat:        repeated,
		Now:           h.Now,
		Remaining:     micros(h.Remaining),
		Claims:        claims,
		Orphans:       orphans,
		Head:          newHead(h.Head),
		Paused:        h.Paused,
		Cancellations: h.cancellations(),
	}
	if !repeated {
		reply.Skipped, reply.Deferred = settlements.skipped(h.Skipped), settlements.positions(h.Deferred)
		reply.SkippedParts, reply.NotBegun = positions(h.SkippedParts), positions(h.NotBegun)
	}

	s.idle.observe(r.Lease.Shard, &reply)
	return reply, nil
}

// readClaims reads what a turn that was sent again has claimed and was handed. The payloads may
// take long to arrive, so the statement locks nothing.
func (s *Store) readClaims(ctx context.Context, r *ports.TurnRequest, got *reply) error {
	var read reply
	err := s.query(ctx, idempotent, read.read, turnClaimsSQL,
		r.Lease.Shard.Queue, index(r.Lease.Shard), r.Lease.Token, r.Number)
	got.claims = read.claims
	return err
}

// split returns the claims of a lease, and those of earlier leases, which were handed over to it.
func (r *reply) split(token int64) (claims, orphans []core.Claim) {
	for _, c := range r.claims {
		if c.Receipt.Token == token {
			claims = append(claims, c)
		} else {
			orphans = append(orphans, c)
		}
	}
	return claims, orphans
}

// turnCall returns the statement for a turn and its parameters.
func (s *Store) turnCall(
	r *ports.TurnRequest,
	settlements *settlementColumns,
	parts []core.PayloadSettlement,
) (template string, args []any, err error) {
	budget := r.Budget()
	args = append(make([]any, 0, turnArgs),
		textOrNone(r.Lease.Shard.Queue), index(r.Lease.Shard),
		textOrNone(r.Lease.Owner), r.Lease.Token, r.Number, r.TTL.Microseconds(), s.now(),
		int32(budget.Jobs), int64(budget.PerJob), int64(budget.Bytes), r.Node)
	args = append(args, settlements.receiptArgs()...)
	keeps := r.Keep.Any() && len(r.Settlements) > 0
	if settlements.usual() && !keeps && !r.Resent && len(r.Parts)+len(r.Begin) == 0 {
		return turnFastSQL, args, nil
	}

	var outcomes *string
	if !settlements.usual() {
		text, err := asJSON(settlements.rows)
		if err != nil {
			return "", nil, err
		}
		outcomes = &text
	}
	args = append(args, outcomes, r.Resent)
	args = append(args, beginArgs(r.Begin)...)
	args = append(args, partArgs(parts)...)
	return turnSQL, append(args, keepArgs(r.Keep)...), nil
}

// positions returns the positions of a request, from 0, for places of a reply, from 1.
func positions(places []int32) (list []int) {
	for _, place := range places {
		list = append(list, int(place)-1)
	}
	return list
}

func byTime(a, b core.Claim) int {
	return cmp.Or(cmp.Compare(a.PerformAt, b.PerformAt), byID(a, b))
}

func byID(a, b core.Claim) int { return strings.Compare(a.ID, b.ID) }

// turnError returns the port's error for a turn that was refused, or nil.
func turnError(h *header, r *ports.TurnRequest) error {
	switch {
	case h.Status == statusStaleTurn:
		return storekit.StaleTurn(r, h.Last)
	case h.Status == statusLeaseLost && h.LeaseToken == r.Lease.Token && r.Number > h.Last+1:
		return storekit.TurnsLost(r, h.Last)
	}
	return h.Status.leaseErr(r.Lease)
}

// beginArgs returns claims as parameters, NULL for none.
func beginArgs(refs []core.ClaimRef) []any {
	if len(refs) == 0 {
		return []any{nil, nil, nil}
	}
	ids, tokens, numbers := make([]string, len(refs)), make([]int64, len(refs)), make([]int64, len(refs))
	for i, ref := range refs {
		ids[i], tokens[i], numbers[i] = orNone(ref.ID), ref.Receipt.Token, ref.Receipt.Number
	}
	return []any{ids, tokens, numbers}
}

// partArgs returns parts as parameters, NULL for none.
func partArgs(parts []core.PayloadSettlement) []any {
	n := len(parts)
	if n == 0 {
		return []any{nil, nil, nil, nil, nil, nil, nil}
	}
	ids, tokens, numbers := make([]string, n), make([]int64, n), make([]int64, n)
	places, retryCounts, recoveries := make([]int32, n), make([]int32, n), make([]int32, n)
	var marks []*float64 // nil if no part has one
	for i, p := range parts {
		ids[i], tokens[i], numbers[i] = orNone(p.ID), p.Receipt.Token, p.Receipt.Number
		places[i], retryCounts[i], recoveries[i] = int32(p.Position), int32(p.RetryCount), int32(p.Recoveries)
		if p.Mark.OK && marks == nil {
			marks = make([]*float64, n)
		}
		if p.Mark.OK {
			marks[i] = markArg(p.Mark)
		}
	}
	return []any{ids, tokens, numbers, places, retryCounts, recoveries, marks}
}
