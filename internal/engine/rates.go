package engine

import (
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// rates are the calls by which a node takes slots of one queue with a rate (docs/rules.md 12). The
// state is dispatch.Slots, which node.pooling guards.
type rates struct {
	retry  backoff
	status *report.Loop
	// warn is done once SlowDown was used without a rate.
	warn sync.Once
	// spare is set while RunDue has a slot that no batch has used.
	spare bool
}

// rate returns the rate of the queue that is in force, or zero.
func (q *Queue) rate() core.Rate {
	if r := q.inForceRate.Load(); r != nil {
		return *r
	}
	return core.Rate{}
}

// rateText returns the rate that is in force as servers announce it: empty if there is none.
func (q *Queue) rateText() string {
	if r := q.rate(); r != (core.Rate{}) {
		return r.String()
	}
	return ""
}

// takeSlots takes the slots that queues with a rate need, until stop is closed.
func (e *Engine) takeSlots(stop <-chan struct{}) {
	var calls sync.WaitGroup
	defer calls.Wait()
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()

	for ok := true; ok; ok = await(timer.C, e.slotsNow, stop) {
		wait := time.Hour
		for _, q := range e.served.Load().queues {
			if q.rate() != (core.Rate{}) {
				wait = min(wait, e.planSlots(q, &calls))
			}
		}
		timer.Reset(max(wait, time.Millisecond))
	}
}

// planSlots takes the slots that a queue needs now, and returns how long to wait until the next look.
func (n *node) planSlots(q *Queue, calls *sync.WaitGroup) time.Duration {
	n.pooling.Lock()
	defer n.unlockPools()
	want, call, wait := q.limit.Slots().Plan(n.now())
	if call {
		rate, ahead := q.rate(), q.limit.Slots().Ahead()
		n.start(calls, func() { n.takeSome(q, rate, want, ahead) })
	}
	return wait
}

// takeSome makes one call. If it fails, the loop makes another one: the queue starts nothing
// meanwhile.
func (n *node) takeSome(q *Queue, rate core.Rate, want int, ahead time.Duration) {
	sent := n.clock.Local()
	reply, err := n.take(q, rate, want, ahead)
	n.answerSlots(q, want, &reply, n.clock.Local().Sub(sent), err)
	q.rates.status.Called(err)
	signal(n.slotsNow)
}

// answerSlots takes the end of a call.
func (n *node) answerSlots(q *Queue, want int, reply *ports.TakeReply, took time.Duration, err error) {
	n.pooling.Lock()
	defer n.unlockPools()
	now := n.now()
	if err != nil {
		q.limit.Slots().Refused(now.Local.Add(q.rates.retry.next()), now)
		return
	}
	q.rates.retry.reset()
	g := &reply.Grants[0]
	if want == 0 {
		q.limit.Slots().Checked(g.Stopped > reply.Now, now)
		return
	}
	q.limit.Slots().Granted(took, want, g.Granted, now.Local.Add(g.First.Sub(reply.Now)), now)
}

// take takes slots of the queue's limiter.
func (n *node) take(q *Queue, rate core.Rate, want int, ahead time.Duration) (ports.TakeReply, error) {
	ctx, cancel := n.callContext()
	defer cancel()
	reply, err := n.store.Take(ctx, ports.TakeRequest{
		Queue: q.Name,
		Takes: []ports.Take{{Rate: rate, Want: want, Ahead: ahead}},
	})
	if err == nil && len(reply.Grants) != 1 {
		err = fmt.Errorf("%w: the store has answered one take of queue %q with %d grants",
			ports.ErrUnusable, q.Name, len(reply.Grants))
	}
	if err == nil {
		n.observer.SlotsTaken(ports.SlotEvent{Queue: q.Name, Want: want, Granted: reply.Grants[0].Granted})
	}
	return reply, err
}

// slowDown stops the limiters of the jobs of a batch that ask for it: that of the job's key or, if it
// has none, that of the queue, each for the longest time that is asked for. The lane waits for the
// store, so the batch ends after the stops have begun.
func (n *node) slowDown(q *Queue, claims []core.Claim, outcomes []core.Outcome) {
	var longest map[string]time.Duration
	for i := range outcomes {
		d := outcomes[i].SlowDown
		if d == 0 {
			continue
		}
		if longest == nil {
			longest = make(map[string]time.Duration)
		}
		key := q.keyOrNone(&claims[i])
		longest[key] = max(longest[key], d)
	}

	for key, d := range longest {
		switch {
		case key != "":
			n.stopRate(q, key, d)
		case q.rate() == core.Rate{}:
			q.rates.warn.Do(func() {
				n.log.Warn("SlowDown has only snoozed its job: the queue has no Rate that it could stop; set one",
					"queue", q.Name)
			})
		default:
			n.pooling.Lock()
			now := n.now()
			q.limit.Slots().Stop(now.Local.Add(min(d, n.cfg.PollInterval)), now)
			n.unlockPools()
			n.stopRate(q, "", d)
		}
	}
}

// stopRate stops the limiter of a queue, or of a key of it.
func (n *node) stopRate(q *Queue, key string, d time.Duration) {
	// A handler may return SlowDown while the server stops: the other servers must learn that, too.
	ctx, cancel := n.lastContext()
	defer cancel()
	stop := ports.StopRequest{Queue: q.Name, Key: key, For: min(d, core.MaxStop)}
	if err := n.store.Stop(ctx, stop); err != nil {
		n.log.Error("the rate of a queue could not be stopped, so other jobs may start before SlowDown says",
			"queue", q.Name, "key", key, "for", d, "error", err)
		return
	}
	n.observer.QueueSlowed(ports.SlowEvent{Queue: q.Name, Key: key, For: stop.For})
}

// obtainSlot takes the slot that RunDue needs to start a batch of a queue with a rate. ok is false if
// the shard has no due job, or if there is no slot now. A slot that no batch has used serves the next
// one of the queue.
func (s *shard) obtainSlot() (ok bool, err error) {
	q := s.queue
	rate := q.rate()
	if rate == (core.Rate{}) || q.rates.spare {
		return true, nil
	}

	if !s.hasWork() { // what has ended may be due again, and handlers may have pushed jobs
		s.mu.Lock()
		s.turns.due = true
		s.mu.Unlock()
		if err := s.turnOnce(); err != nil {
			return false, err
		}
		if !s.hasWork() {
			return false, nil
		}
	}

	reply, err := s.node.take(q, rate, 1, 0)
	if err != nil {
		return false, fmt.Errorf("take a slot of the rate of queue %q: %w", q.Name, err)
	}
	q.rates.spare = reply.Grants[0].Granted == 1
	return q.rates.spare, nil
}
