package skeintest

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// recorder makes the events of a Drain. It takes the outcomes of jobs from the end of a batch, and
// the ends of their payloads from the turn that settles the jobs.
type recorder struct {
	ports.Observer
	store  *Store
	events Events
	// limit is the number of jobs after which stop is called.
	limit int
	stop  context.CancelFunc
	began core.Instant
	// unsettled are the events whose jobs no turn has settled yet.
	unsettled map[execution]unsettled
	// queues are the declared queues, by name.
	queues map[string]declaredQueue
	// slots are when queues whose rate has allowed no start may start the next job.
	slots map[string]core.Instant
	// twice has the jobs whose first run was lost, for Store.Twice.
	twice
}

type declaredQueue struct {
	shards []core.Shard
	merge  core.MergeRule
}

// execution names one execution of a job: its claim.
type execution struct {
	shard   core.Shard
	id      string
	receipt core.Receipt
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
		Observer: observer, store: s, limit: limit, stop: stop,
		unsettled: make(map[execution]unsettled), queues: make(map[string]declaredQueue),
		slots: make(map[string]core.Instant),
		twice: twice{lostEvents: make(map[int]bool), again: make(map[core.Shard]map[string]bool)},
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
			Payloads: r.printed(e.Shard.Queue, c.Payloads),
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
	case core.Awaiting:
		return Awaiting
	default:
		return Untouched
	}
}

// printed returns stored payloads of a queue as an Event shows them.
func (r *recorder) printed(queue string, stored []core.Payload) []string {
	return printed(r.queues[queue].merge.PushedAll(stored))
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

// settled completes the event of a job that a turn has settled. The settlement was
// skipped if the handler had settled the job in a transaction.
func (r *recorder) settled(shard core.Shard, s *core.Settlement, skipped bool, now core.Instant) {
	key := execution{shard, s.ID, s.Receipt.Whole()}
	open, ok := r.unsettled[key]
	if !ok { // a job of an earlier server, which this one recovers
		return
	}

	before, transacted := r.store.transacted.LoadAndDelete(key)
	if skipped && !transacted { // another settlement of the job may be right
		return
	}

	delete(r.unsettled, key)
	delete(r.again[shard], s.ID)

	event := &r.events[open.event]
	claim := r.withoutParts(key, open.claim)

	switch {
	case skipped:
		s = before.(*core.Settlement)
		if s.Processed && event.Outcome != Done { // the transaction decides, not the handler's result
			event.Outcome, event.Error = Done, ""
		}
	case event.Outcome == Done && !s.Processed: // the transaction has not committed
		event.Outcome, event.Error = Failed, r.store.decodeError(s.PutBack.Failures.Newest().Text)
	}

	back, dead := s.Apply(claim.Job, now)
	event.Buried = r.printed(shard.Queue, dead.Payloads)
	if len(back.Payloads) > 0 {
		event.Next = sinceStart(back.PerformAt)
	}

	switch {
	case event.Outcome != Failed, s.PutBack.SameTime: // else the payload that failed was settled before
	case s.PutBack.RetryCount == core.FreshRetryCount:
		event.Outcome = Exhausted
	case len(dead.Payloads) > 0 && len(back.Payloads) == 0: // no payload could be decoded
		event.Outcome = Buried
	}
}

// withoutParts returns a claim without the payloads that its handler has settled by themselves.
func (r *recorder) withoutParts(key execution, claim core.Claim) core.Claim {
	parts, _ := r.store.parts.LoadAndDelete(key)
	all, _ := parts.([]core.PayloadSettlement)
	for i := range all {
		if left, ok := all[i].Apply(claim); ok {
			claim = left
		}
	}
	return claim
}

// intercept watches the calls of a store for declared queues and settled jobs.
func (r *recorder) intercept(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
	if turn, ok := call.Request.(*ports.TurnRequest); ok && r.store.Twice && r.loses(turn) {
		return r.crash(ctx, turn)
	}
	if err := next(ctx); err != nil {
		return err
	}

	switch request := call.Request.(type) {
	case *ports.DeclareRequest:
		r.queues[request.Queue] = declaredQueue{core.Shards(request.Queue, request.Shards), request.Merge}
	case *ports.TakeRequest:
		grant := call.Reply.(*ports.TakeReply).Grants[0]
		delete(r.slots, request.Queue)
		if grant.Granted == 0 {
			r.slots[request.Queue] = grant.First
		}
	case *ports.TurnRequest:
		r.turned(request, call.Reply.(*ports.TurnReply))
	}
	return nil
}

// turned completes the events of the jobs that a turn has settled.
func (r *recorder) turned(request *ports.TurnRequest, reply *ports.TurnReply) {
	for i := range request.Settlements {
		r.settled(request.Lease.Shard, &request.Settlements[i], slices.Contains(reply.Skipped, i), reply.Now)
	}
}

// nextDue returns when the next job or tick of the declared queues is due, and their rates allow it.
func (r *recorder) nextDue(ctx context.Context) (core.Head, error) {
	var all []core.Shard
	for _, q := range r.queues {
		all = append(all, q.shards...)
	}
	jobs, err := r.store.Heads(ctx, all)
	if err != nil {
		return core.Head{}, err
	}
	ticks, err := r.store.Ticks(ctx, ports.TicksRequest{Shards: all})
	if err != nil {
		return core.Head{}, err
	}

	var next core.Head
	for i := range all {
		job := jobs.Heads[i]
		job.Due = max(job.Due, r.slots[all[i].Queue])
		next = next.Earlier(job).Earlier(ticks.Shards[i].Head)
	}
	return next, nil
}
