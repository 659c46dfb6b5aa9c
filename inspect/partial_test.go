package inspect_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// partialStore is a store of three shards that can't reach shard 1, and whose pages are short: now
// and then one is empty.
type partialStore struct {
	inspect.Store
	calls int
}

var unreachedShard = core.Shard{Queue: "orders", Index: 1}

func (p *partialStore) part(r *ports.PageRequest) []core.Shard {
	if r.Shards != nil && !slices.Contains(r.Shards, 1) {
		return nil
	}
	r.Shards = []int{0, 2}
	return []core.Shard{unreachedShard}
}

func (p *partialStore) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	unreached := p.part(&r.PageRequest)
	if p.calls++; p.calls%2 == 0 && r.After != (ports.Cursor{}) {
		return ports.JobsPage{Next: r.After, Unreached: unreached}, nil
	}
	r.Limit = min(r.Size(), 2)
	page, err := p.Store.Jobs(ctx, r)
	page.Unreached = unreached
	return page, err
}

func (p *partialStore) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	unreached := p.part(&r.PageRequest)
	r.Limit = min(r.Size(), 1)
	page, err := p.Store.Morgue(ctx, r)
	page.Unreached = unreached
	return page, err
}

func (p *partialStore) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	r.Shards = []int{0, 2}
	all, err := p.Store.Stats(ctx, r)
	for i := range all {
		all[i].Unreached = []core.Shard{unreachedShard}
	}
	return all, err
}

func (p *partialStore) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	reply, err := p.Store.History(ctx, r)
	reply.Unreached = []core.Shard{unreachedShard}
	return reply, err
}

func (p *partialStore) QuarantinedShards(
	context.Context,
	ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	return ports.QuarantinedShards{Unreached: []core.Shard{unreachedShard}}, nil
}

// reachable returns the ids that are not in the shard that can't be reached.
func reachable(ids []string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return core.ShardOf(id, fixtureShards) == 1 })
}

func isPartial(t *testing.T, err error) {
	t.Helper()
	var partial *inspect.PartialError
	if !errors.As(err, &partial) || !slices.Equal(partial.Unreached, []core.Shard{unreachedShard}) {
		t.Errorf("%v, want a PartialError of %v", err, unreachedShard)
	}
}

func TestAListHasWhatIsReachedAndSaysWhatIsNot(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 40)
	s.pushAll(ids...)
	i := inspect.New(&partialStore{Store: s.store}, inspect.Options{})
	for _, limit := range []int{0, 5} {
		want := reachable(ids)
		if limit > 0 {
			want = want[:limit]
		}

		var got []string
		var last error
		for job, err := range i.Jobs(t.Context(), "orders", inspect.ListOptions{Limit: limit}) {
			if last = err; err == nil {
				got = append(got, job.ID)
			}
		}

		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
		isPartial(t, last)
	}
}

func TestAHistoryHasWhatIsReachedAndSaysWhatIsNot(t *testing.T) {
	s := newFixture(t)
	record := ports.Record{
		Queue:  "orders",
		Minute: core.InstantOf(s.clock.Now()).Minute(),
		Stats:  core.Stats{Processed: 7},
	}
	if err := s.store.Record(t.Context(), ports.RecordRequest{
		Owner:   "n1",
		Records: []ports.Record{record},
	}); err != nil {
		t.Fatal(err)
	}
	minutes, err := inspect.New(&partialStore{Store: s.store}, inspect.Options{}).History(t.Context(), "orders",
		inspect.HistoryOptions{})
	isPartial(t, err)
	if len(minutes) != 1 || minutes[0].Processed != 7 {
		t.Errorf("%+v, want the minute that is reached", minutes)
	}
}

func TestStatsHaveWhatIsReachedAndSayWhatIsNot(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 40)
	s.pushAll(ids...)
	stats, err := inspect.New(&partialStore{Store: s.store}, inspect.Options{}).Stats(t.Context(), "orders")
	isPartial(t, err)
	if len(stats) != 1 || stats[0].Length() != int64(len(reachable(ids))) {
		t.Errorf("%+v, want the jobs of two shards", stats)
	}
}

func TestAFilterHandlesWhatIsReached(t *testing.T) {
	s := newFixture(t)
	ids := numbered("order", 12)
	s.dead(ids...)
	s.advance(time.Second)
	i := inspect.New(&partialStore{Store: s.store}, inspect.Options{})
	result, err := i.Revive(t.Context(), "orders", inspect.AllDead(func(inspect.DeadLetter) bool {
		return true
	}, inspect.BulkOptions{}))
	isPartial(t, err)
	if want := len(reachable(ids)); result.Handled != want {
		t.Errorf("%d revived, want the %d that can be reached", result.Handled, want)
	}
	if result, err = i.Purge(t.Context(), "orders", inspect.AllDead(nil, inspect.BulkOptions{})); result.Handled != 0 {
		t.Errorf("%d purged (%v), want none", result.Handled, err)
	}
}

func TestListsBeginAtValues(t *testing.T) {
	s := withLists(t)
	for name, c := range map[string]struct {
		o    inspect.ListOptions
		want []string
	}{
		"by time": {inspect.ListOptions{FromTime: epoch.Add(24 * time.Hour)}, []string{"a"}},
		"by id":   {inspect.ListOptions{SortBy: inspect.ByID, FromID: "d"}, []string{"d", "e", "f"}},
		"by id, down": {
			inspect.ListOptions{SortBy: inspect.ByID, FromID: "d", Descending: true},
			[]string{"d", "c", "a"},
		},
		"by retries":    {inspect.ListOptions{SortBy: inspect.RetryingByCount, FromRetries: 2}, []string{"d"}},
		"with a prefix": {inspect.ListOptions{SortBy: inspect.ByID, Prefix: "c"}, []string{"c"}},
		"fresh ones":    {inspect.ListOptions{SortBy: inspect.ByID, Fresh: true}, []string{"a", "f"}},
		"of no shard":   {inspect.ListOptions{Shards: []int{}}, nil},
		"of all by index": {
			inspect.ListOptions{SortBy: inspect.ByID, Shards: []int{2, 0, 1}},
			[]string{"a", "c", "d", "e", "f"},
		},
	} {
		if diff := cmp.Diff(c.want, jobIDs(t, s.Jobs(t.Context(), "orders", c.o))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}

	for name, o := range map[string]inspect.ListOptions{
		"an id by time":     {FromID: "a"},
		"a time by id":      {SortBy: inspect.ByID, FromTime: epoch},
		"retries by time":   {FromRetries: 1},
		"negative retries":  {SortBy: inspect.RetryingByCount, FromRetries: -1},
		"a prefix by time":  {Prefix: "a"},
		"fresh of retrying": {SortBy: inspect.RetryingByID, Fresh: true},
	} {
		for _, err := range s.Jobs(t.Context(), "orders", o) {
			if !errors.Is(err, inspect.ErrInvalidOptions) {
				t.Errorf("%s: %v, want ErrInvalidOptions", name, err)
			}
		}
	}

	for _, err := range s.Claimed(t.Context(), "orders", inspect.ListOptions{Fresh: true}) {
		if !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("fresh claimed jobs: %v, want ErrInvalidOptions", err)
		}
	}
}

func TestErrorTextsAreCutBeforeTheyAreDecoded(t *testing.T) {
	s := withLists(t)
	for dead, err := range s.Morgue(t.Context(), "orders", inspect.ListOptions{ErrorBytes: 4}) {
		if err != nil || dead.LastError != "hope" {
			t.Errorf("%q (%v), want 4 bytes of the error", dead.LastError, err)
		}
	}
}
