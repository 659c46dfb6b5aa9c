// Package model has the store with which the suite compares others. It implements the contract of
// package ports by package core alone, as briefly as possible.
package model

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Store implements the contract of package ports in the simplest way: with maps under one mutex,
// whose values it sorts for each list. The code aims to be easy to read, not to be fast. A Store is
// safe for concurrent use.
type Store struct {
	clock func() time.Time
	// Reach reports whether the turn with the given number can hand over the orphan with the given
	// id. Number 0 is Acquire. nil means that each call can hand over all orphans.
	Reach func(turn int64, id string) bool

	mu      sync.Mutex
	id      string
	queues  map[string]*queue
	nodes   map[string]node
	actions map[string]ports.Action
}

type queue struct {
	record   ports.Queue
	shards   []*shard
	records  map[recordKey]core.Stats
	permits  map[string]permit
	tracked  map[string]core.Instant
	limiters map[string]core.Limiter
}

// shard has each copy of a payload in exactly one of queued, claimed and dead. Its lists of
// payloads are never written to, only replaced.
type shard struct {
	at         core.Shard
	lease      lease
	queued     map[string]core.Job
	claimed    map[string]claimedJob
	dead       map[string]core.DeadLetter
	groups     map[string]core.Group
	schedules  map[core.ScheduleKey]core.Schedule
	past       map[string]core.Past
	pastAge    time.Duration
	once       map[core.OnceKey]core.Instant
	rule       core.MergeRule
	superseded int64
	stale      int64
	repeated   int64
	processed  int64
	failed     int64
}

type claimedJob struct {
	ports.ClaimView
	drop bool
}

// node is the last announcement of a server, its expiry, and whether an operator drains the server.
type node struct {
	ports.Node
	ttl   time.Duration
	asked bool
}

var _ ports.ShardStore = (*Store)(nil)

// New returns an empty store that reads the given clock. It has no handles: all callers of a
// backend share the store.
func New(clock func() time.Time) *Store {
	return &Store{
		clock:   clock,
		id:      rand.Text(),
		queues:  map[string]*queue{},
		nodes:   map[string]node{},
		actions: map[string]ports.Action{},
	}
}

// Now returns the store's time.
func (m *Store) Now() core.Instant { return core.InstantOf(m.clock()) }

// ClaimedIDs returns the ids of the claimed jobs of a shard, in order.
func (m *Store) ClaimedIDs(at core.Shard) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.queues[at.Queue].shards[at.Index].claimed))
}

// SettingsOf returns the settings of a queue.
func (m *Store) SettingsOf(queue string) core.Settings {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queues[queue].view().Settings
}

// DeadIDs returns the ids of the dead letters of a shard, in order.
func (m *Store) DeadIDs(at core.Shard) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.queues[at.Queue].shards[at.Index].dead))
}

// Schedule returns a schedule of a shard. It is the zero value if there is none.
func (m *Store) Schedule(at core.Shard, k core.ScheduleKey) core.Schedule {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.queues[at.Queue].shards[at.Index].schedules[k]
}

func (m *Store) queue(ctx context.Context, name string) (*queue, error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("queue %q: %w", name, err)
	}
	q, ok := m.queues[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q; declare it", ports.ErrUnknownQueue, name)
	}
	return q, nil
}

func (m *Store) shard(ctx context.Context, at core.Shard) (*queue, *shard, error) {
	q, err := m.queue(ctx, at.Queue)
	if err != nil {
		return nil, nil, err
	}
	if at.Index < 0 || at.Index >= len(q.shards) {
		return nil, nil, fmt.Errorf("%w: there is no shard %v", ports.ErrInvalidRequest, at)
	}
	return q, q.shards[at.Index], nil
}

// asked returns the shard of an operator's request. If invalid is not nil, it returns that error.
func (m *Store) asked(ctx context.Context, at core.Shard, invalid error) (*shard, error) {
	if invalid != nil {
		return nil, invalid
	}
	_, s, err := m.shard(ctx, at)
	return s, err
}

// agrees returns ErrShardCountMismatch unless the caller's layout is the queue's.
func (q *queue) agrees(shards int, generation int64) error {
	if shards != q.record.Shards || generation != q.record.Generation {
		return fmt.Errorf("%w: %d shards of generation %d, not %d of %d; declare it again", ports.ErrShardCountMismatch,
			q.record.Shards, q.record.Generation, shards, generation)
	}
	return nil
}

// sorted returns the values of a map in the given order.
func sorted[V any](values map[string]V, order func(a, b V) int) []V {
	return slices.SortedFunc(maps.Values(values), order)
}

func byTime(a, b core.Job) int {
	return cmp.Or(cmp.Compare(a.PerformAt, b.PerformAt), cmp.Compare(a.ID, b.ID))
}

func byChange(a, b core.DeadLetter) int {
	return cmp.Or(cmp.Compare(a.ChangedAt, b.ChangedAt), cmp.Compare(a.ID, b.ID))
}

func byClaimID(a, b claimedJob) int { return cmp.Compare(a.ID, b.ID) }
