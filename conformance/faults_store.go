package conformance

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// relay is a store whose calls that write pass through around, which may make
// them any number of times and gives the error.
type relay struct {
	ports.ShardStore
	around func(method string, call func() error) error
	// resends says that around makes a call again for a caller who has had no
	// answer, as the caller of a turn must say.
	resends bool
}

// pass is one call on its way; a call that fails answers nothing.
func pass[Q, A any](ctx context.Context, s *relay, method string, request Q, call func(context.Context, Q) (A, error)) (A, error) {
	var answer A
	err := s.around(method, func() (err error) {
		answer, err = call(ctx, request)
		return err
	})
	if err != nil {
		return *new(A), err
	}
	return answer, nil
}

func tellOnly[Q any](call func(context.Context, Q) error) func(context.Context, Q) (struct{}, error) {
	return func(ctx context.Context, request Q) (struct{}, error) { return struct{}{}, call(ctx, request) }
}

func (s *relay) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	return pass(ctx, s, "Declare", r, s.ShardStore.Declare)
}

func (s *relay) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	return pass(ctx, s, "Push", r, s.ShardStore.Push)
}

func (s *relay) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return pass(ctx, s, "Acquire", r, s.ShardStore.Acquire)
}

func (s *relay) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	sent := false
	return pass(ctx, s, "Turn", r, func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		r.Resent = r.Resent || sent && s.resends
		sent = true
		return s.ShardStore.Turn(ctx, r)
	})
}

func (s *relay) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return pass(ctx, s, "Renew", r, s.ShardStore.Renew)
}

func (s *relay) Release(ctx context.Context, l ports.Lease) error {
	_, err := pass(ctx, s, "Release", l, tellOnly(s.ShardStore.Release))
	return err
}

func (s *relay) Announce(ctx context.Context, r ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return pass(ctx, s, "Announce", r, s.ShardStore.Announce)
}

func (s *relay) Retire(ctx context.Context, owner string) error {
	_, err := pass(ctx, s, "Retire", owner, tellOnly(s.ShardStore.Retire))
	return err
}

func (s *relay) Pause(ctx context.Context, queue string) error {
	_, err := pass(ctx, s, "Pause", queue, tellOnly(s.ShardStore.Pause))
	return err
}

func (s *relay) Resume(ctx context.Context, queue string) error {
	_, err := pass(ctx, s, "Resume", queue, tellOnly(s.ShardStore.Resume))
	return err
}

func (s *relay) Forget(ctx context.Context, queue string) error {
	_, err := pass(ctx, s, "Forget", queue, tellOnly(s.ShardStore.Forget))
	return err
}

func (s *relay) Recount(ctx context.Context, shard core.Shard) (ports.RecountReply, error) {
	return pass(ctx, s, "Recount", shard, s.ShardStore.Recount)
}

func (s *relay) Expedite(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Expedite", r, s.ShardStore.Expedite)
}

func (s *relay) Bury(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Bury", r, s.ShardStore.Bury)
}

func (s *relay) Delete(ctx context.Context, r ports.JobStep) (ports.StepReply, error) {
	return pass(ctx, s, "Delete", r, s.ShardStore.Delete)
}

func (s *relay) Cancel(ctx context.Context, r ports.CancelRequest) (ports.StepReply, error) {
	return pass(ctx, s, "Cancel", r, s.ShardStore.Cancel)
}

func (s *relay) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return pass(ctx, s, "Revive", r, s.ShardStore.Revive)
}

func (s *relay) Purge(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	return pass(ctx, s, "Purge", r, s.ShardStore.Purge)
}

func (s *relay) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	return pass(ctx, s, "Edit", r, s.ShardStore.Edit)
}
