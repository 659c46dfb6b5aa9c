package env

import (
	"context"
	"errors"
	"time"

	"github.com/skeinq/skein/conformance/internal/harness"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Declare declares a queue, whose record the other helpers then use.
func (e *Env) Declare(name string, shards int) {
	e.TB.Helper()
	e.DeclareWith(ports.DeclareRequest{Queue: name, Shards: shards})
}

// DeclareWith declares a queue with options.
func (e *Env) DeclareWith(r ports.DeclareRequest) {
	e.TB.Helper()
	reply, err := e.Store.Declare(e.Ctx, r)
	e.Must(err, "Declare")
	e.Declared[r.Queue] = ports.Queue{
		Name:       r.Queue,
		Shards:     r.Shards,
		Generation: reply.Generation,
		IndexIDs:   r.IndexIDs,
		Merge:      r.Merge,
	}
}

// Newest is the merge rule newest.
var Newest = core.MergeRule{Stays: core.Highest}

// By declares the queue orders again with a merge rule. The queue must be empty.
func (e *Env) By(rule core.MergeRule) {
	e.TB.Helper()
	e.Forget()
	e.DeclareWith(ports.DeclareRequest{Queue: Orders, Shards: 1, Merge: rule})
}

// Forget forgets the queue orders.
func (e *Env) Forget() {
	e.TB.Helper()
	e.ForgetQueue(Orders)
}

// ForgetQueue removes a queue.
func (e *Env) ForgetQueue(queue string) {
	e.TB.Helper()
	before := e.Repeats.All.Load()
	err := e.Store.Forget(e.Ctx, queue)
	if errors.Is(err, ports.ErrUnknownQueue) && e.Repeats.All.Load() > before {
		return // the first call has removed the queue
	}
	e.Must(err, "Forget")
}

// Pause pauses a queue.
func (e *Env) Pause(queue string) {
	e.TB.Helper()
	e.Must(e.Store.Pause(e.Ctx, queue), "Pause")
}

// Resume resumes a queue.
func (e *Env) Resume(queue string) {
	e.TB.Helper()
	e.Must(e.Store.Resume(e.Ctx, queue), "Resume")
}

// Cancel cancels claimed jobs, and drops them if drop is true.
func (e *Env) Cancel(drop bool, ids ...string) ports.StepReply {
	e.TB.Helper()
	reply, err := e.Store.Cancel(e.Ctx, ports.CancelRequest{Shard: e.Shard, IDs: ids, Drop: drop})
	e.Must(err, "Cancel")
	return reply
}

// JobStep is Expedite, Bury or Delete.
type JobStep func(context.Context, ports.JobStep) (ports.StepReply, error)

// DeadLetterStep is Revive or Purge.
type DeadLetterStep func(context.Context, ports.DeadLetterStep) (ports.StepReply, error)

// ByIDs handles the named jobs.
func (e *Env) ByIDs(do JobStep, ids ...string) ports.StepReply {
	e.TB.Helper()
	reply, err := do(e.Ctx, ports.JobStep{Shard: e.Shard, IDs: ids})
	e.Must(err, "a step by ids")
	return reply
}

// Firsts handles first payloads of jobs. named has two elements for each job: its id, and the Data
// of its first payload.
func (e *Env) Firsts(do JobStep, named ...string) ports.StepReply {
	e.TB.Helper()
	step := ports.JobStep{Shard: e.Shard, First: [][]byte{}}
	for i := 0; i < len(named); i += 2 {
		step.IDs, step.First = append(step.IDs, named[i]), append(step.First, []byte(named[i+1]))
	}
	reply, err := do(e.Ctx, step)
	e.Must(err, "a step over first payloads")
	return reply
}

// ByRefs handles the named dead letters, or payloads of them.
func (e *Env) ByRefs(do DeadLetterStep, refs ...ports.DeadLetterRef) ports.StepReply {
	e.TB.Helper()
	reply, err := do(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, DeadLetters: refs})
	e.Must(err, "a step by dead letters")
	return reply
}

// ByAge handles at most limit dead letters that last changed before an instant.
func (e *Env) ByAge(do DeadLetterStep, before core.Instant, limit int) ports.StepReply {
	e.TB.Helper()
	since := e.Repeats.Lossy.Load()
	reply, err := do(e.Ctx, ports.DeadLetterStep{Shard: e.Shard, Before: before, Limit: limit})
	e.Must(err, "a step over all")
	e.GiveUpIfRepeated(since)
	return reply
}

// Whole refers to a dead letter with all its payloads.
func Whole(id string) ports.DeadLetterRef { return ports.DeadLetterRef{ID: id} }

// Parts refers to some payloads of a dead letter, by their Data.
func Parts(id string, data ...string) ports.DeadLetterRef {
	ref := ports.DeadLetterRef{ID: id, Payloads: [][]byte{}}
	for _, d := range data {
		ref.Payloads = append(ref.Payloads, []byte(d))
	}
	return ref
}

// DeadLetterSteps are the methods that handle dead payloads.
func (e *Env) DeadLetterSteps() map[string]DeadLetterStep {
	return map[string]DeadLetterStep{"Revive": e.Store.Revive, "Purge": e.Store.Purge}
}

// Edit replaces a payload of a dead letter, and returns the number of handled ones.
func (e *Env) Edit(id, old, new string) int {
	e.TB.Helper()
	reply, err := e.Store.Edit(e.Ctx, ports.EditRequest{Shard: e.Shard, ID: id, Old: []byte(old), New: []byte(new)})
	e.Must(err, "Edit")
	e.Same("the store's clock", reply.Now, e.Now())
	return reply.Handled
}

// Recount makes all steps of a recount of the shard, with about limit entries a step. It calls
// between after each step except the last.
func (e *Env) Recount(limit int, between func()) ports.RecountReply {
	e.TB.Helper()
	reply, err := harness.RecountAround(e.Store, e.Ctx, ports.RecountRequest{Shard: e.Shard, Limit: limit}, between)
	e.Must(err, "Recount")
	return reply
}

// FailAll pushes a job for each id and fails it with the error "boom". The first job is due again
// in a second, and each other one a second after the one before it.
func (e *Env) FailAll(ids ...string) {
	e.TB.Helper()
	e.PushIDs(ids...)
	h := e.Acquire("failer")
	var s []core.Settlement
	for i, c := range h.Claim(len(ids)) {
		s = append(s, Failed(c, "boom", time.Duration(i+1)*time.Second))
	}
	h.Settle(s...)
	h.Release()
}

// BuryAll buries a job with the payloads p and q for each id, and advances the clock by a second
// after each burial.
func (e *Env) BuryAll(ids ...string) {
	e.TB.Helper()
	for _, id := range ids {
		e.Push(EntryAt(id, "p", 1, 0), EntryAt(id, "q", 2, 0))
		e.ByIDs(e.Store.Bury, id)
		e.Clock.Advance(time.Second)
	}
}

// DeadIDs returns the ids in the morgue of orders, by time.
func (e *Env) DeadIDs() []string {
	e.TB.Helper()
	return e.MorguePages(false)(WholePage(Orders)).IDs
}

// HeldState is the state of a job that Hold has made held, pushed at the start.
func HeldState() core.State {
	return core.State{PerformAt: core.MaxInstant, RetryCount: 2, FirstPush: Start, Failures: Failures("boom")}
}

// Hold pushes a job and makes it held.
func (e *Env) Hold(id string, payloads ...core.Payload) {
	e.TB.Helper()
	e.Place(id, HeldState(), payloads...)
}

// Nodes lists the nodes that run and those that are gone.
func (e *Env) Nodes() []ports.Node {
	e.TB.Helper()
	reply, err := e.Store.Nodes(e.Ctx)
	e.Must(err, "Nodes")
	e.Same("the time of the nodes", reply.Now, e.Now())
	return reply.Nodes
}

// Drain makes a server drain, or ends that.
func (e *Env) Drain(owner string, drain bool) {
	e.TB.Helper()
	e.Must(e.Store.DrainNode(e.Ctx, owner, drain), "DrainNode")
}

// Retire retires a server.
func (e *Env) Retire(owner string) {
	e.TB.Helper()
	e.Must(e.Store.Retire(e.Ctx, owner), "Retire")
}
