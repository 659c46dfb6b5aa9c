package inspect_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// damagedStore is a store that has set records aside in one of its shards.
type damagedStore struct {
	inspect.Store
	shard     core.Shard
	records   []ports.QuarantinedRecord
	discarded []string
}

func (s *damagedStore) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	all, err := s.Store.Stats(ctx, r)
	for i := range all {
		all[i].Quarantined += int64(len(s.records))
		all[i].Shards[s.shard.Index].Quarantined += int64(len(s.records))
	}
	return all, err
}

func (s *damagedStore) QuarantinedShards(
	context.Context,
	ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	return ports.QuarantinedShards{Shards: []core.Shard{s.shard}}, nil
}

func (s *damagedStore) Quarantined(
	_ context.Context,
	r ports.QuarantineRequest,
) (page ports.QuarantinePage, err error) {
	if r.Shard != s.shard {
		return page, fmt.Errorf("%v has nothing to ask for", r.Shard)
	}
	for _, q := range s.records {
		if q.Key <= r.After {
			continue
		}

		if len(page.Records) == 2 {
			page.Next = page.Records[1].Key
			break
		}
		page.Records = append(page.Records, q)
	}
	return page, nil
}

func (s *damagedStore) Discard(_ context.Context, r ports.DiscardRequest) (int, error) {
	s.discarded = append(s.discarded, r.Keys...)
	return len(r.Keys), nil
}

func TestWhatWasSetAsideIsListedAndDiscarded(t *testing.T) {
	f := newFixture(t)
	store := &damagedStore{Store: f.store, shard: core.Shard{Queue: "orders", Index: 0}}
	var want []inspect.QuarantinedRecord
	for i := range 5 {
		key, at := fmt.Sprint("k", i), core.Instant(1_000_000*(i+1))
		store.records = append(store.records, ports.QuarantinedRecord{
			Key: key, ID: "a", Place: ports.PlaceDead, Since: at, Reason: "cut", Stored: []byte("?"), Size: 7,
		})
		want = append(want, inspect.QuarantinedRecord{
			Shard:  store.shard,
			Key:    key,
			ID:     "a",
			Place:  "dead",
			Since:  time.UnixMicro(int64(at)).UTC(),
			Reason: "cut",
			Stored: []byte("?"),
			Size:   7,
		})
	}

	inspector := inspect.New(store, inspect.Options{})
	var got []inspect.QuarantinedRecord
	for r, err := range inspector.Quarantined(t.Context(), "orders") {
		if err != nil {
			t.Fatal(err)
		}
		r.Since = r.Since.UTC()
		got = append(got, r)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	stats, err := inspector.Stats(t.Context(), "orders")
	if err != nil || stats[0].Quarantined != 5 {
		t.Errorf("Stats = %+v, %v; want 5 that were set aside", stats, err)
	}

	if n, err := inspector.Discard(t.Context(), got[0].Shard, got[0].Key, got[1].Key); n != 2 || err != nil {
		t.Errorf("Discard = %d, %v; want 2", n, err)
	}
	if diff := cmp.Diff([]string{"k0", "k1"}, store.discarded); diff != "" {
		t.Error(diff)
	}
}
