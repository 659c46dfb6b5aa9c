package inspect_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func TestQuarantinedSaysWhatItCouldNotReach(t *testing.T) {
	s := newFixture(t)
	i := inspect.New(&partialStore{Store: s.store}, inspect.Options{})
	var last error
	for _, err := range i.Quarantined(t.Context(), "orders") {
		last = err
	}
	isPartial(t, last)
}

func TestWhatAListCantBeIsAnInvalidOption(t *testing.T) {
	s := newFixture(t)
	s.dead("d")
	for name, o := range map[string]inspect.ListOptions{
		"negative shard":               {Shards: []int{-1}},
		"no such shard":                {Shards: []int{fixtureShards}},
		"prefix of control characters": {SortBy: inspect.ByID, Prefix: "\x00"},
		"from id that is not UTF-8":    {SortBy: inspect.ByID, FromID: "\xff"},
	} {
		for _, err := range s.Morgue(t.Context(), "orders", o) {
			if !errors.Is(err, inspect.ErrInvalidOptions) {
				t.Errorf("%s: %v; want ErrInvalidOptions", name, err)
			}
		}
	}

	if _, err := s.Purge(t.Context(), "orders",
		inspect.AllDead(nil,
			inspect.BulkOptions{Prefix: "\n", DryRun: true})); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("a bulk prefix: %v; want ErrInvalidOptions", err)
	}
}

type forgetful struct {
	inspect.Store
	forget string
}

func (f *forgetful) Queues(ctx context.Context) ([]ports.Queue, error) {
	q, err := f.Store.Queues(ctx)
	if f.forget != "" {
		_ = f.Store.Forget(ctx, f.forget)
	}
	return q, err
}

// A queue that is forgotten while all are looked at hides no other.
func TestStatsOfAllWhileAQueueIsForgotten(t *testing.T) {
	s := newFixture(t)
	s.declare("old", 1)
	stats, err := inspect.New(&forgetful{s.store, "old"}, inspect.Options{}).Stats(t.Context())
	if err != nil || len(stats) != 1 {
		t.Errorf("%d queues, %v; want orders: no queue was named", len(stats), err)
	}
}

// awayStore can't reach shard 0 now.
type awayStore struct{ inspect.Store }

func (p *awayStore) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	r.Shards = []int{1, 2}
	all, err := p.Store.Stats(ctx, r)
	for i := range all {
		all[i].Unreached = []core.Shard{{Queue: "orders", Index: 0}}
	}
	return all, err
}

func TestAContinuedActionIsDoneThoughAFinishedShardIsAway(t *testing.T) {
	s := newFixture(t)
	s.dead(numbered("d", 60)...)
	s.advance(time.Second)
	var kept []inspect.Checkpoint
	ctx, kill := context.WithCancel(t.Context())
	_, _ = s.Revive(ctx, "orders",
		inspect.AllDead(anyLetter, inspect.BulkOptions{Filter: "f", Checkpoint: func(c inspect.Checkpoint) {
			if kept = append(kept, c); len(kept) == 2 {
				kill()
			}
		}}))

	i := inspect.New(&awayStore{s.store}, inspect.Options{})
	r, err := i.Revive(t.Context(), "orders",
		inspect.AllDead(anyLetter, inspect.BulkOptions{Filter: "f", Continue: kept[1]}))
	if c := s.counts(); c.Dead != 0 {
		t.Fatalf("%+v", c)
	}
	if err != nil || r.Checkpoint != "" {
		t.Errorf("all 60 are revived (%d handled), but it says %v, and to go on from %q", r.Handled, err, r.Checkpoint)
	}
}

func TestNamedIDsOfOtherShardsAreHandledThoughOneIsAway(t *testing.T) {
	s := newFixture(t)
	ids := numbered("d", 30)
	s.dead(ids...)

	store := away0{s.store}
	r, err := inspect.New(store, inspect.Options{}).Revive(t.Context(), "orders", inspect.DeadIDs(ids...))
	want := 0
	for _, id := range ids {
		if core.ShardOf(id, fixtureShards) != 0 {
			want++
		}
	}

	var partial *inspect.PartialError
	if r.Handled != want || !errors.As(err, &partial) {
		t.Errorf("%d revived (%v); want the %d of the shards that are there", r.Handled, err, want)
	}
}

// away0 is a store whose first shard can't be reached.
type away0 struct{ inspect.Store }

func (f away0) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	stats, err := f.Store.Stats(ctx, r)
	for at := range stats {
		stats[at].Unreached, stats[at].Shards = []core.Shard{stats[at].Shards[0].Shard}, stats[at].Shards[1:]
	}
	return stats, err
}

func (f away0) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	if r.Shard.Index == 0 {
		return ports.StepReply{}, errors.New("master is away")
	}
	return f.Store.Revive(ctx, r)
}

func (f away0) Import(ctx context.Context, r ports.ImportRequest) (ports.StepReply, error) {
	if r.Shard.Index == 0 {
		return ports.StepReply{}, errors.New("master is away")
	}
	return f.Store.Import(ctx, r)
}

// An import brings the dead letters of the reachable shards, however many steps it takes, and the
// same import again brings the rest.
func TestAnImportGoesOnThoughAShardIsAway(t *testing.T) {
	var letters []core.DeadLetter
	want := 0
	for _, id := range numbered("d", 3*core.MaxTurnPayloads) {
		letters = append(letters, core.DeadLetter{ID: id, ChangedAt: 5, Payloads: []core.Payload{{Data: []byte("p")}}})
		if core.ShardOf(id, fixtureShards) != 0 {
			want++
		}
	}

	s := newFixture(t)
	r, err := inspect.New(away0{s.store}, inspect.Options{}).Import(t.Context(), "orders", sequence(letters, nil), nil)
	var partial *inspect.PartialError
	if r.Handled != want || !errors.As(err, &partial) || len(partial.Unreached) != 1 {
		t.Errorf("%d imported (%v); want the %d of the shards that are there", r.Handled, err, want)
	}

	r, err = s.Import(t.Context(), "orders", sequence(letters, nil), nil)
	if err != nil || r.Handled != len(letters)-want || s.counts().Dead != int64(len(letters)) {
		t.Errorf("%d imported (%v) when it is back; want the other %d", r.Handled, err, len(letters)-want)
	}
}

// The requested number of fresh jobs does not limit the number of other jobs in front of them.
func TestFreshOnesComeInLargePages(t *testing.T) {
	s := newFixture(t)
	s.failed(numbered("f", 2000)...)
	s.push("fresh", 1000*time.Hour, "p")

	h := s.intercept()
	calls := 0
	h.before = func(method string) error {
		if method == "Jobs" {
			calls++
		}
		return nil
	}

	for _, limit := range []int{1, 100} {
		calls = 0
		n := 0
		for range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{Fresh: true, Limit: limit})) {
			n++
		}

		if n != 1 || calls > 2000/ports.DefaultPage+2 {
			t.Errorf("Limit %d: %d exchanges with the store for %d job behind 2000 others", limit, calls, n)
		}
	}
}

func TestEachMethodKnowsNoUnknownQueue(t *testing.T) {
	s := newFixture(t)
	ctx := t.Context()
	for name, act := range map[string]func() error{
		"Revive of none": func() error { _, err := s.Revive(ctx, "nope", inspect.DeadIDs()); return err },
		"Delete of none": func() error { _, err := s.Delete(ctx, "nope", inspect.JobIDs()); return err },
		"RevivePayloads of none": func() error {
			_, err := s.Revive(ctx, "nope", inspect.DeadPayloads(inspect.DeadLetterPayloads{ID: "x"}))
			return err
		},
		"Edit of none": func() error { _, err := s.Edit(ctx, "nope", inspect.DeadIDs(), upper); return err },
	} {
		if err := act(); !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Errorf("%s: %v; want ErrUnknownQueue", name, err)
		}
	}
}
