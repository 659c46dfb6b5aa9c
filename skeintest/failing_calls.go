package skeintest

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

var _ ports.ShardStore = (*FailingStore)(nil)

// call carries out a call of a method, unless it meets a fault. One that fails
// answers nothing.
func call[A any](s *FailingStore, method string, carryOut func() (A, error)) (A, error) {
	f := s.fault(method)
	if f == nil {
		return carryOut()
	}
	var none A
	if f.ReplyLost {
		if _, err := carryOut(); err != nil {
			return none, err
		}
	}
	return none, f.Err
}

// tell is call for a method without an answer.
func tell(s *FailingStore, method string, carryOut func() error) error {
	_, err := call(s, method, func() (struct{}, error) { return struct{}{}, carryOut() })
	return err
}

// Push implements ports.Producer.
func (s *FailingStore) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	f := s.fault("Push")
	if f == nil {
		return s.store.Push(ctx, r)
	}
	stored, failed := f.push(r.Entries)
	if len(stored) > 0 {
		carried := r
		carried.Entries = stored
		if _, err := s.store.Push(ctx, carried); err != nil {
			return ports.PushReply{}, unstored(r.Entries, err)
		}
	}
	return ports.PushReply{}, failed
}

// Declare implements ports.Producer.
func (s *FailingStore) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	return call(s, "Declare", func() (ports.DeclareReply, error) { return s.store.Declare(ctx, r) })
}

// Acquire implements ports.Consumer.
func (s *FailingStore) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return call(s, "Acquire", func() (ports.AcquireReply, error) { return s.store.Acquire(ctx, r) })
}

// Turn implements ports.Consumer.
func (s *FailingStore) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	return call(s, "Turn", func() (ports.TurnReply, error) { return s.store.Turn(ctx, r) })
}

// Renew implements ports.Consumer.
func (s *FailingStore) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return call(s, "Renew", func() (ports.RenewReply, error) { return s.store.Renew(ctx, r) })
}

// Release implements ports.Consumer.
func (s *FailingStore) Release(ctx context.Context, l ports.Lease) error {
	return tell(s, "Release", func() error { return s.store.Release(ctx, l) })
}

// Heads implements ports.Consumer.
func (s *FailingStore) Heads(ctx context.Context, shards []core.Shard) (ports.HeadsReply, error) {
	return call(s, "Heads", func() (ports.HeadsReply, error) { return s.store.Heads(ctx, shards) })
}

// Ping implements ports.Registry.
func (s *FailingStore) Ping(ctx context.Context) error {
	return tell(s, "Ping", func() error { return s.store.Ping(ctx) })
}

// Announce implements ports.Registry.
func (s *FailingStore) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return call(s, "Announce", func() (ports.AnnounceReply, error) { return s.store.Announce(ctx, r) })
}

// Retire implements ports.Registry.
func (s *FailingStore) Retire(ctx context.Context, owner string) error {
	return tell(s, "Retire", func() error { return s.store.Retire(ctx, owner) })
}

// Nodes implements ports.Registry.
func (s *FailingStore) Nodes(ctx context.Context) ([]ports.Node, error) {
	return call(s, "Nodes", func() ([]ports.Node, error) { return s.store.Nodes(ctx) })
}

// Queues implements ports.Registry.
func (s *FailingStore) Queues(ctx context.Context) ([]ports.Queue, error) {
	return call(s, "Queues", func() ([]ports.Queue, error) { return s.store.Queues(ctx) })
}

// Stats implements ports.Inspector.
func (s *FailingStore) Stats(ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	return call(s, "Stats", func() ([]ports.QueueStats, error) { return s.store.Stats(ctx, queues) })
}

// History implements ports.Inspector.
func (s *FailingStore) History(ctx context.Context, r ports.HistoryRequest) ([]ports.MinuteStats, error) {
	return call(s, "History", func() ([]ports.MinuteStats, error) { return s.store.History(ctx, r) })
}

// Jobs implements ports.Inspector.
func (s *FailingStore) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return call(s, "Jobs", func() (ports.JobsPage, error) { return s.store.Jobs(ctx, r) })
}

// Claimed implements ports.Inspector.
func (s *FailingStore) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	return call(s, "Claimed", func() (ports.ClaimedPage, error) { return s.store.Claimed(ctx, r) })
}

// Morgue implements ports.Inspector.
func (s *FailingStore) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	return call(s, "Morgue", func() (ports.MorguePage, error) { return s.store.Morgue(ctx, r) })
}

// Find implements ports.Inspector.
func (s *FailingStore) Find(ctx context.Context, queue, id string) (ports.Found, error) {
	return call(s, "Find", func() (ports.Found, error) { return s.store.Find(ctx, queue, id) })
}

// Pause implements ports.Operator.
func (s *FailingStore) Pause(ctx context.Context, queue string) error {
	return tell(s, "Pause", func() error { return s.store.Pause(ctx, queue) })
}

// Resume implements ports.Operator.
func (s *FailingStore) Resume(ctx context.Context, queue string) error {
	return tell(s, "Resume", func() error { return s.store.Resume(ctx, queue) })
}

// Forget implements ports.Operator.
func (s *FailingStore) Forget(ctx context.Context, queue string) error {
	return tell(s, "Forget", func() error { return s.store.Forget(ctx, queue) })
}

// Recount implements ports.Operator.
func (s *FailingStore) Recount(ctx context.Context, shard core.Shard) (ports.RecountReply, error) {
	return call(s, "Recount", func() (ports.RecountReply, error) { return s.store.Recount(ctx, shard) })
}

// Expedite implements ports.Operator.
func (s *FailingStore) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return call(s, "Expedite", func() (ports.StepReply, error) { return s.store.Expedite(ctx, r) })
}

// Bury implements ports.Operator.
func (s *FailingStore) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return call(s, "Bury", func() (ports.StepReply, error) { return s.store.Bury(ctx, r) })
}

// Delete implements ports.Operator.
func (s *FailingStore) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return call(s, "Delete", func() (ports.StepReply, error) { return s.store.Delete(ctx, r) })
}

// Cancel implements ports.Operator.
func (s *FailingStore) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	return call(s, "Cancel", func() (ports.StepReply, error) { return s.store.Cancel(ctx, r) })
}

// Revive implements ports.Operator.
func (s *FailingStore) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return call(s, "Revive", func() (ports.StepReply, error) { return s.store.Revive(ctx, r) })
}

// Purge implements ports.Operator.
func (s *FailingStore) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return call(s, "Purge", func() (ports.StepReply, error) { return s.store.Purge(ctx, r) })
}

// Edit implements ports.Operator.
func (s *FailingStore) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	return call(s, "Edit", func() (ports.StepReply, error) { return s.store.Edit(ctx, r) })
}
