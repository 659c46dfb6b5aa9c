package engine_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// begin checks the start of a job's execution. It returns false if the process is killed.
func (l *ledger) begin(ctx context.Context, p *process, claim *core.Claim) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.killed {
		return false
	}

	c := l.claims[claim.Ref()]
	if c == nil {
		l.Errorf("at %v: %v runs, which no turn claimed", l.elapsed(), claim.Ref())
		return false
	}

	l.starts[c.shard]++
	lease := leaseKey{c.shard, c.Receipt.Token}
	for _, rule := range []struct {
		broken bool
		rule   string
	}{
		{c.run != nil, "one execution per claim"},
		{c.settled && l.elapsed() >= l.excused, "a claim that is settled does not run"},
		{
			l.tokens[c.shard] != lease.token && l.elapsed() >= l.excused,
			"no start under a lease that another one followed",
		},
		{c.Recoveries > 0 && !c.Begun, "a recovered job has begun in the store before its handler starts"},
		{c.Alone() && l.leaseRuns[lease] > 0, "a job that was recovered twice runs alone in its shard"},
		{l.policy.LastChance(claim) && p.lastChances > 0, "one job on its last chance runs in a process"},
		{!slices.IsSortedFunc(claim.Payloads, core.Payload.Compare), "payloads are in order"},
		{
			l.overlaps(c, p),
			"executions of an id overlap only if the first one's lease was lost and its context ended before",
		},
	} {
		if rule.broken {
			l.Errorf("at %v: %v starts: %s\nclaim: %+v\nbefore: %+v",
				l.elapsed(), claim.Ref(), rule.rule, c, l.running[c.ID])
		}
	}

	c.run = &run{process: p, ctx: ctx}
	l.running[c.ID] = c
	l.leaseRuns[lease]++
	if l.policy.LastChance(claim) {
		p.lastChances++
	}
	return true
}

// overlaps reports whether an execution that may still do something forbids the start of c in p.
func (l *ledger) overlaps(c *claimRecord, p *process) bool {
	before := l.running[c.ID]
	if before == nil || before.run.ended || before.run.process.killed {
		return false
	}
	return before.run.ctx.Err() == nil && l.elapsed() >= l.excused || before.Receipt.Token >= c.Receipt.Token ||
		before.run.process == p
}

// end notes how the execution of a job ended.
func (l *ledger) end(claim *core.Claim, o core.Outcome) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.claims[claim.Ref()]
	c.run.ended, c.run.outcome, c.run.interrupted = true, o, c.run.ctx.Err() != nil
	if l.running[c.ID] == c {
		delete(l.running, c.ID)
	}
	l.leaseRuns[leaseKey{c.shard, c.Receipt.Token}]--
	if l.policy.LastChance(claim) {
		c.run.process.lastChances--
	}
}

// settle checks a settlement that the store has applied, and notes the fate of the payloads.
func (l *ledger) settle(lease ports.Lease, s *core.Settlement, now core.Instant) {
	c := l.claims[core.ClaimRef{ID: s.ID, Receipt: s.Receipt}]
	if fault := l.fault(lease, c, s); fault != "" {
		l.Errorf("at %v: %v settles %s as %+v: %s\nclaim: %+v\nrun: %+v", l.elapsed(), lease, s.ID, *s, fault, c, c.run)
	}
	c.settled = true
	if s.Processed {
		l.processed++
	}
	if s.Failed {
		l.failed++
	}
	back, dead := s.Apply(c.Job, now)
	for _, p := range c.Payloads {
		switch data := string(p.Data); {
		case contains(back.Payloads, data):
		case contains(dead.Payloads, data):
			l.settlePayload(c, p, buried)
		case s.Processed:
			l.settlePayload(c, p, done)
		default:
			l.settlePayload(c, p, dropped)
		}
	}
}

// settlePayload also checks that a payload is settled once, and that those of an id are done in
// their order.
func (l *ledger) settlePayload(c *claimRecord, p core.Payload, became fate) {
	key := payloadKey{c.ID, string(p.Data)}
	if before := l.payloads[key]; before != kept {
		l.Errorf("at %v: %v is settled again: %v, before %v", l.elapsed(), key, became, before)
	}
	l.payloads[key] = became
	if became != done {
		return
	}
	if p.Score < l.lastDone[c.ID] {
		l.Errorf("at %v: score %v of %s is done after %v", l.elapsed(), p.Score, c.ID, l.lastDone[c.ID])
	}
	l.lastDone[c.ID] = p.Score
}

// fault returns why a settlement does not follow from the claim's execution, or "".
func (l *ledger) fault(lease ports.Lease, c *claimRecord, s *core.Settlement) string {
	untouched := l.same(c, s, core.Outcome{Kind: core.Untouched})
	own := s.Receipt.Token == lease.Token
	switch {
	case own && c.run != nil && !c.run.ended && !c.run.process.killed:
		return "its handler runs"
	case !c.run.over() && l.elapsed() >= l.excused:
		return "its handler may run elsewhere"
	case c.cancelled && (untouched || c.drop && l.same(c, s, core.Outcome{Kind: core.Dropped})):
		return ""
	case !own:
		at := s.Letter.Failures.Newest().At
		if !s.Buries() {
			at = s.PutBack.Failures.Newest().At
		}
		if want := l.policy.Recover(&c.Claim, at); !reflect.DeepEqual(*s, want) {
			return fmt.Sprintf("it was recovered; want %+v", want)
		}
	case c.run == nil && !untouched:
		return "it has not started"
	case c.run == nil, untouched && c.run.interrupted && c.run.outcome.Kind != core.Done:
	case !l.same(c, s, c.run.outcome):
		return "its handler ended otherwise"
	}
	return ""
}

// same reports whether a settlement is that of an outcome, but for failures.
func (l *ledger) same(c *claimRecord, s *core.Settlement, o core.Outcome) bool {
	if l.policy.BacksOff(&c.Claim, &o) {
		o.Delay, o.OwnDelay = l.policy.Wait(l.policy.Retry(&c.Claim, &o), 0), true
	}
	want, got := l.policy.Settlement(&c.Claim, &o, 0), *s
	sameExcept := slices.Equal(want.Except, got.Except)
	for _, side := range []*core.Settlement{&want, &got} {
		side.Letter.Failures, side.PutBack.Failures, side.Except = nil, nil, nil
	}
	return sameExcept && reflect.DeepEqual(want, got)
}

// close checks, once all nodes have ended, that nothing is open and that the store counts as the
// ledger does.
func (l *ledger) close() {
	l.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()

	for ref, c := range l.claims {
		if !c.settled || !c.run.over() {
			l.Errorf("%v is open: %+v", ref, c)
		}
	}

	var sum ports.Counts
	for queue, shards := range l.queues {
		stats := l.statsOf(queue)
		sum = ports.SumCounts(sum, stats.Counts)
		for index := range shards {
			shard := core.Shard{Queue: queue, Index: index}
			if r, err := l.store.Recount(context.Background(), ports.RecountRequest{Shard: shard}); err != nil ||
				r.Before != r.After {
				l.Errorf("Recount of %v: %+v, %v", shard, r, err)
			}
		}
	}

	queued := sum.Fresh + sum.Retrying
	buriedIDs := make(map[string]bool)
	for key, f := range l.payloads {
		switch {
		case f == kept && queued == 0:
			l.Errorf("%v was lost", key)
		case f == buried:
			buriedIDs[key.id] = true
		}
	}

	got := [...]int64{queued, sum.Claimed, sum.Dead, sum.Processed, sum.Failed}
	if want := [...]int64{0, 0, int64(len(buriedIDs)), l.processed, l.failed}; got != want {
		l.Errorf("queued, claimed, dead, processed, failed are %v, want %v", got, want)
	}
}
