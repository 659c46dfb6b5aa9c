package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// full is a store with every extra.
type full interface {
	ports.ShardStore
	ports.Notifier
	ports.Settler
	Transactor
}

// hooks is a store of which some methods are replaced.
type hooks struct {
	full
	push    func(context.Context, ports.PushRequest) (ports.PushReply, error)
	acquire func(context.Context, ports.AcquireRequest) (ports.AcquireReply, error)
	turn    func(context.Context, ports.TurnRequest) (ports.TurnReply, error)
	renew   func(context.Context, ports.RenewRequest) (ports.RenewReply, error)
	release func(context.Context, ports.Lease) error
	stats   func(context.Context, []string) ([]ports.QueueStats, error)
	claimed func(context.Context, ports.PageRequest) (ports.ClaimedPage, error)
	pause   func(context.Context, string) error
	forget  func(context.Context, string) error
	jobs    func(context.Context, ports.JobsRequest) (ports.JobsPage, error)
	revive  func(context.Context, ports.DeadLetterStep) (ports.StepReply, error)
	wakeups func(context.Context, []core.Shard) (<-chan core.Shard, error)
	settle  func(context.Context, core.Shard, []core.Settlement) error
}

// hooked is a store whose methods are its own until they are replaced.
func hooked(s full) *hooks {
	return &hooks{
		full: s, push: s.Push, acquire: s.Acquire, turn: s.Turn, renew: s.Renew, release: s.Release, stats: s.Stats,
		claimed: s.Claimed, pause: s.Pause, forget: s.Forget, jobs: s.Jobs, revive: s.Revive, wakeups: s.Wakeups, settle: s.Settle,
	}
}

func (h *hooks) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	return h.push(ctx, r)
}

func (h *hooks) Acquire(ctx context.Context, r ports.AcquireRequest) (ports.AcquireReply, error) {
	return h.acquire(ctx, r)
}

func (h *hooks) Turn(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
	return h.turn(ctx, r)
}

func (h *hooks) Renew(ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	return h.renew(ctx, r)
}

func (h *hooks) Release(ctx context.Context, l ports.Lease) error { return h.release(ctx, l) }

func (h *hooks) Stats(ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	return h.stats(ctx, queues)
}

func (h *hooks) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	return h.claimed(ctx, r)
}

func (h *hooks) Forget(ctx context.Context, queue string) error { return h.forget(ctx, queue) }

func (h *hooks) Pause(ctx context.Context, queue string) error { return h.pause(ctx, queue) }

func (h *hooks) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return h.jobs(ctx, r)
}

func (h *hooks) Revive(ctx context.Context, s ports.DeadLetterStep) (ports.StepReply, error) {
	return h.revive(ctx, s)
}

func (h *hooks) Wakeups(ctx context.Context, shards []core.Shard) (<-chan core.Shard, error) {
	return h.wakeups(ctx, shards)
}

func (h *hooks) Settle(ctx context.Context, s core.Shard, settle []core.Settlement) error {
	return h.settle(ctx, s, settle)
}

// wrapped is the memory store, broken by what is wrapped around its one handle.
func wrapped(wrap func(full) full) Factory {
	return func(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
		store := wrap(withTransactions(memory.New(memory.Options{Clock: clock})))
		return func() ports.ShardStore { return store }
	}
}
