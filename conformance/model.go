package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// model is the port's contract as plainly as it can be written: maps that are
// sorted when somebody asks, under one mutex. The random test holds stores
// against it, so it is written to be read, not to be fast.
type model struct {
	clock func() time.Time
	// reach says which of the jobs that earlier leases left the turn of a number
	// can hand over; 0 is Acquire. nil is all of them.
	reach func(turn int64, id string) bool

	mu     sync.Mutex
	queues map[string]*modelQueue
	nodes  map[string]ports.Node
}

type modelQueue struct {
	record  ports.Queue
	shards  []*modelShard
	minutes map[core.Instant]*core.Stats
}

// modelShard holds a copy of a payload in exactly one of queued, claimed and
// dead. The lists of payloads in it are never written to, only replaced.
type modelShard struct {
	shard     core.Shard
	lease     modelLease
	queued    map[string]core.Job
	claimed   map[string]modelClaim
	dead      map[string]core.DeadLetter
	processed int64
	failed    int64
}

type modelClaim struct {
	ports.ClaimView
	drop bool
}

var _ ports.ShardStore = (*model)(nil)

// newModel is an empty model whose time is the clock's. Several handles on one
// backend are the same value.
func newModel(clock func() time.Time) ports.ShardStore {
	return &model{
		clock:  clock,
		queues: map[string]*modelQueue{},
		nodes:  map[string]ports.Node{},
	}
}

func (m *model) now() core.Instant { return core.InstantOf(m.clock()) }

func (m *model) queue(ctx context.Context, name string) (*modelQueue, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("queue %q: %w", name, err)
	}
	q, ok := m.queues[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q; declare it", ports.ErrUnknownQueue, name)
	}
	return q, nil
}

func (m *model) shard(ctx context.Context, at core.Shard) (*modelQueue, *modelShard, error) {
	q, err := m.queue(ctx, at.Queue)
	if err != nil {
		return nil, nil, err
	}
	if at.Index < 0 || at.Index >= len(q.shards) {
		return nil, nil, fmt.Errorf("%w: there is no shard %v", ports.ErrInvalidRequest, at)
	}
	return q, q.shards[at.Index], nil
}

// agrees checks what a push or an acquire knows of the queue.
func (q *modelQueue) agrees(shards int, generation int64) error {
	if shards != q.record.Shards || generation != q.record.Generation {
		return fmt.Errorf("%w: %d shards of generation %d, not %d of %d; declare it again", ports.ErrShardCountMismatch,
			q.record.Shards, q.record.Generation, shards, generation)
	}
	return nil
}

// sorted is the values of a map in order.
func sorted[V any](values map[string]V, order func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(values), order)
}

func byTime(a, b core.Job) int {
	return cmp.Or(cmp.Compare(a.PerformAt, b.PerformAt), cmp.Compare(a.ID, b.ID))
}

func byChange(a, b core.DeadLetter) int {
	return cmp.Or(cmp.Compare(a.ChangedAt, b.ChangedAt), cmp.Compare(a.ID, b.ID))
}

func byClaimID(a, b modelClaim) int { return cmp.Compare(a.ID, b.ID) }
