package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Steps and pushes lock the same jobs, and each keeps the counts right.
func TestPostgresCountsHoldBesideOperatorsAndPushes(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	shard := core.Shard{Queue: "orders"}
	var ids []string
	for i := range 40 {
		ids = append(ids, fmt.Sprint("id ", i))
	}
	some := func() []string {
		chosen := slices.Clone(ids)
		rand.Shuffle(len(chosen), func(i, j int) { chosen[i], chosen[j] = chosen[j], chosen[i] })
		return chosen[:1+rand.IntN(len(chosen))]
	}
	var all errgroup
	for range 3 {
		all.Go(func() error {
			r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Rule: core.PushRule{Kind: core.Earliest}}
			for n := range 60 {
				r.Entries = nil
				for _, id := range some() {
					data := fmt.Appendf(nil, "%d of %s", n%3, id)
					r.Entries = append(r.Entries,
						core.Entry{ID: id, When: core.In(time.Hour), Payload: core.Payload{Data: data}})
				}
				if _, err := s.Push(t.Context(), r); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range 2 {
		all.Go(func() error {
			for range 40 {
				_, err1 := s.Expedite(t.Context(), ports.JobStep{Shard: shard, IDs: some()})
				_, err2 := s.Bury(t.Context(), ports.JobStep{Shard: shard, IDs: some()})
				_, err3 := s.Revive(t.Context(), ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant, Limit: 10})
				_, err4 := s.Delete(t.Context(), ports.JobStep{Shard: shard, IDs: some()[:1]})
				_, err5 := s.Purge(t.Context(), ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant, Limit: 1})
				if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
					return err
				}
			}
			return nil
		})
	}
	v.must(all.Wait())
	stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	v.must(err)
	jobs, err := s.Jobs(t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
	v.must(err)
	dead, err := s.Morgue(t.Context(), ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
	v.must(err)
	got := [3]int64{stats[0].Fresh, stats[0].Retrying, stats[0].Dead}
	if want := [3]int64{int64(len(jobs.Jobs)), 0, int64(len(dead.DeadLetters))}; got != want {
		t.Errorf("fresh, retrying and dead are counted as %v, and there are %v", got, want)
	}
}

// Changes of counts pile up while no server runs. Each look replaces a part of them by their sum,
// so that later looks read fewer. No change of a transaction that was open for long is lost.
func TestPostgresLooksFoldCounts(t *testing.T) {
	t.Parallel()
	v := newViewed(t, 1)
	s := v.open(postgres.Options{})
	insert := fmt.Sprintf(`INSERT INTO %s.count_changes (shard, fresh, retrying, dead, processed, failed)
		SELECT 0, 1, 2, 3, 4, 5 FROM generate_series(1, $1)`, v.schema)
	slow, err := v.pool.Begin(t.Context())
	v.must(err)
	defer slow.Rollback(context.Background())
	_, err = slow.Exec(t.Context(), insert, 7)
	v.must(err)
	_, err = v.pool.Exec(t.Context(), insert, 25_000)
	v.must(err)
	counts := func(n int64) {
		t.Helper()
		stats, err := s.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		v.must(err)
		want := ports.Counts{Fresh: n, Retrying: 2 * n, Dead: 3 * n, Processed: 4 * n, Failed: 5 * n}
		if diff := cmp.Diff(want, stats[0].Counts); diff != "" {
			t.Errorf("the counts of %d changes (-want +got):\n%s", n, diff)
		}
	}
	for range 4 {
		counts(25_000)
	}
	v.must(slow.Commit(t.Context()))
	counts(25_007)
	var left int
	v.must(v.pool.QueryRow(t.Context(), `SELECT count(*) FROM `+v.schema+`.count_changes`).Scan(&left))
	if left > 1000 {
		t.Errorf("%d changes are left to sum up, want 1,000 at most", left)
	}
}
