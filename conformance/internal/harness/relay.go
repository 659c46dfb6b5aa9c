package harness

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Relay is a store whose calls that write pass through Around.
type Relay struct {
	ports.ShardStore
	// Around may make the call any number of times and returns the caller's error.
	Around func(method string, call func() error) error
	// Resends says that Around makes a call again for a caller that has had no reply,
	// as the caller of a turn must say.
	Resends bool
}

// pass makes one call through Around. A call that fails has an empty reply.
func pass[Q, A any](ctx context.Context, s *Relay, method string, request Q, call func(context.Context, Q) (A, error)) (A, error) {
	var reply A
	err := s.Around(method, func() (err error) {
		reply, err = call(ctx, request)
		return err
	})
	if err != nil {
		return *new(A), err
	}
	return reply, nil
}

func errorOnly[Q any](call func(context.Context, Q) error) func(context.Context, Q) (struct{}, error) {
	return func(ctx context.Context, request Q) (struct{}, error) { return struct{}{}, call(ctx, request) }
}

func (s *Relay) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	return pass(ctx, s, "Declare", r, s.ShardStore.Declare)
}

func (s *Relay) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	return pass(ctx, s, "Push", r, s.ShardStore.Push)
}

func (s *Relay) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return pass(ctx, s, "Acquire", r, s.ShardStore.Acquire)
}

func (s *Relay) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	sent := false
	return pass(ctx, s, "Turn", r, func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		r.Resent = r.Resent || sent && s.Resends
		sent = true
		return s.ShardStore.Turn(ctx, r)
	})
}

func (s *Relay) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return pass(ctx, s, "Renew", r, s.ShardStore.Renew)
}

func (s *Relay) Release(ctx context.Context, l ports.Lease) error {
	_, err := pass(ctx, s, "Release", l, errorOnly(s.ShardStore.Release))
	return err
}

func (s *Relay) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return pass(ctx, s, "Announce", r, s.ShardStore.Announce)
}

func (s *Relay) Retire(ctx context.Context, owner string) error {
	_, err := pass(ctx, s, "Retire", owner, errorOnly(s.ShardStore.Retire))
	return err
}

func (s *Relay) Pause(ctx context.Context, queue string) error {
	_, err := pass(ctx, s, "Pause", queue, errorOnly(s.ShardStore.Pause))
	return err
}

func (s *Relay) Resume(ctx context.Context, queue string) error {
	_, err := pass(ctx, s, "Resume", queue, errorOnly(s.ShardStore.Resume))
	return err
}

func (s *Relay) Forget(ctx context.Context, queue string) error {
	_, err := pass(ctx, s, "Forget", queue, errorOnly(s.ShardStore.Forget))
	return err
}

func (s *Relay) Recount(ctx context.Context, shard core.Shard) (ports.RecountReply, error) {
	return pass(ctx, s, "Recount", shard, s.ShardStore.Recount)
}

func (s *Relay) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Expedite", r, s.ShardStore.Expedite)
}

func (s *Relay) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Bury", r, s.ShardStore.Bury)
}

func (s *Relay) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Delete", r, s.ShardStore.Delete)
}

func (s *Relay) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	return pass(ctx, s, "Cancel", r, s.ShardStore.Cancel)
}

func (s *Relay) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return pass(ctx, s, "Revive", r, s.ShardStore.Revive)
}

func (s *Relay) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return pass(ctx, s, "Purge", r, s.ShardStore.Purge)
}

func (s *Relay) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	return pass(ctx, s, "Edit", r, s.ShardStore.Edit)
}
