package skeintest

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// recorder makes events: a batch's end tells the outcomes of its jobs, and the
// turn that settles them what became of their payloads.
type recorder struct {
	ports.Observer
	store  *Store
	events Events
	// limit is how many jobs may run; then stop is called.
	limit int
	stop  context.CancelFunc
	began core.Instant
	// unsettled are the events whose turn is still to come.
	unsettled map[execution]unsettled
}

// execution names one execution of a job: its claim.
type execution struct {
	shard core.Shard
	id    string
	mark  core.Receipt
}

type unsettled struct {
	event int
	claim core.Claim
}

func newRecorder(s *Store, limit int, stop context.CancelFunc) *recorder {
	observer := s.Server.Observer
	if observer == nil {
		observer = ports.NopObserver{}
	}
	return &recorder{
		Observer: observer, store: s, limit: limit, stop: stop, unsettled: make(map[execution]unsettled),
	}
}

// BatchStart implements ports.Observer.
func (r *recorder) BatchStart(ctx context.Context, e ports.BatchEvent) context.Context {
	r.began = core.InstantOf(r.store.Now())
	return r.Observer.BatchStart(ctx, e)
}

// BatchEnd implements ports.Observer.
func (r *recorder) BatchEnd(ctx context.Context, e ports.BatchEvent) {
	r.Observer.BatchEnd(ctx, e)
	for i := range e.Claims {
		c := &e.Claims[i]
		r.unsettled[execution{e.Shard, c.ID, c.Receipt}] = unsettled{len(r.events), *c}
		r.events = append(r.events, Event{
			At:       sinceStart(r.began),
			Queue:    e.Shard.Queue,
			ID:       c.ID,
			Payloads: printed(c.Payloads),
			Outcome:  outcomeOf(e.Outcomes[i].Kind),
			Error:    r.store.decodeError(errorOf(&e.Outcomes[i])),
		})
	}
	if len(r.events) >= r.limit {
		r.stop()
	}
}

func outcomeOf(kind core.OutcomeKind) Outcome {
	switch kind {
	case core.Done:
		return Done
	case core.Failed:
		return Failed
	case core.Buried:
		return Buried
	case core.Snoozed:
		return Snoozed
	default:
		return Untouched
	}
}

func errorOf(o *core.Outcome) string {
	if o.Error != "" {
		return o.Error
	}
	for _, p := range o.Payloads {
		if p.Bury {
			return p.Error
		}
	}
	return ""
}

// settled completes the event that a turn's settlement belongs to. It was skipped
// if the handler has settled the job before, in a transaction.
func (r *recorder) settled(shard core.Shard, s *core.Settlement, skipped bool, now core.Instant) {
	key := execution{shard, s.ID, s.Receipt}
	open, ok := r.unsettled[key]
	if !ok { // a job of a server before this one, which is recovered
		return
	}
	delete(r.unsettled, key)
	event := &r.events[open.event]
	before, transacted := r.store.transacted.LoadAndDelete(key)
	switch {
	case skipped && !transacted:
		return
	case skipped:
		s = before.(*core.Settlement)
		if s.Processed && event.Outcome != Done { // whatever the handler returned
			event.Outcome, event.Error = Done, ""
		}
	case event.Outcome == Done && !s.Processed: // it has not committed
		event.Outcome, event.Error = Failed, r.store.decodeError(s.PutBack.Error)
	}
	back, dead := s.Apply(open.claim.Job, now)
	event.Buried = printed(dead.Payloads)
	if len(back.Payloads) > 0 {
		event.Next = sinceStart(back.PerformAt)
	}
	switch {
	case event.Outcome != Failed:
	case s.PutBack.RetryCount == core.FreshRetryCount:
		event.Outcome = Exhausted
	case len(dead.Payloads) > 0 && len(back.Payloads) == 0: // no payload could be decoded
		event.Outcome = Buried
	}
}

// recorded is a store whose turns a recorder sees, and that knows the shards of
// the queues that are declared through it.
type recorded struct {
	ports.ShardStore
	recorder *recorder
	shards   map[string][]core.Shard
}

// Declare implements ports.Producer.
func (s *recorded) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	reply, err := s.ShardStore.Declare(ctx, r)
	if err == nil {
		s.shards[r.Queue] = core.Shards(r.Queue, r.Shards)
	}
	return reply, err
}

// Turn implements ports.Consumer.
func (s *recorded) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	reply, err := s.ShardStore.Turn(ctx, r)
	if err == nil {
		for i := range r.Settlements {
			s.recorder.settled(r.Lease.Shard, &r.Settlements[i], slices.Contains(reply.Skipped, i), reply.Now)
		}
	}
	return reply, err
}

// nextDue is when the queues could next give a job.
func (s *recorded) nextDue(ctx context.Context) (core.Head, error) {
	var all []core.Shard
	for _, shards := range s.shards {
		all = append(all, shards...)
	}
	reply, err := s.Heads(ctx, all)
	var next core.Head
	for _, h := range reply.Heads {
		if h.OK && (!next.OK || h.Due < next.Due) {
			next = h
		}
	}
	return next, err
}
