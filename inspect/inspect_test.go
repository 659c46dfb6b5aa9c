package inspect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

func TestQueuesAreListedByName(t *testing.T) {
	s := newFixture(t)
	if _, err := s.store.Declare(t.Context(), ports.DeclareRequest{Queue: "bills", Shards: 7}); err != nil {
		t.Fatal(err)
	}
	if err := s.Pause(t.Context(), "bills"); err != nil {
		t.Fatal(err)
	}

	got, err := s.Queues(t.Context())
	want := []inspect.Queue{
		{Name: "bills", Shards: 7, Paused: true},
		{Name: "orders", Shards: fixtureShards, IndexIDs: true},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Queues: %v (-want +got):\n%s", err, diff)
	}
}

func TestNodesAreListedByName(t *testing.T) {
	s := newFixture(t)
	announce := func(ttl time.Duration, n ports.Node) {
		t.Helper()
		if _, err := s.store.Announce(t.Context(), ports.AnnounceRequest{Node: n, TTL: ttl}); err != nil {
			t.Fatal(err)
		}
	}

	announce(time.Minute, ports.Node{Owner: "o3", Name: "red", Draining: true})
	announce(time.Second, ports.Node{
		Owner: "o2", Name: "green", Host: "h", PID: 7, Lanes: 3, Queues: []string{"orders", "bills"},
		Version: "v2", Status: ports.NodeStatus{Shards: 5, Running: 4, Busy: 3, Claimed: 2},
	})
	announce(time.Minute, ports.Node{Owner: "o1", Name: "blue"})

	s.advance(time.Second)
	got, err := s.Nodes(t.Context())
	want := []inspect.Node{
		{Owner: "o1", Name: "blue", StartedAt: epoch, ExpiresAt: epoch.Add(time.Minute)},
		{
			Owner:     "o2",
			Name:      "green",
			Host:      "h",
			PID:       7,
			Lanes:     3,
			Queues:    []string{"orders", "bills"},
			Version:   "v2",
			State:     inspect.NodeGone,
			Status:    inspect.NodeStatus{Shards: 5, Running: 4, Busy: 3, Claimed: 2},
			StartedAt: epoch,
			ExpiresAt: epoch.Add(time.Second),
		},
		{Owner: "o3", Name: "red", State: inspect.NodeDraining, StartedAt: epoch, ExpiresAt: epoch.Add(time.Minute)},
	}

	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("Nodes: %v (-want +got):\n%s", err, diff)
	}
}

func TestStatsCountAQueueAndItsShards(t *testing.T) {
	s := newFixture(t)
	s.dead("gone")
	s.failed("retried", "again")
	s.advance(3 * time.Hour)
	s.push("later", time.Hour, "p")
	s.push("soon", -time.Minute, "p")
	before := s.counts()
	want := inspect.Counts{Fresh: 2, Retrying: 2, Dead: 1, Failed: 3, Oldest: epoch.Add(time.Hour), Lag: 2 * time.Hour}
	if diff := cmp.Diff(want, before); diff != "" {
		t.Errorf("Stats (-want +got):\n%s", diff)
	}
	if before.Length() != 4 {
		t.Errorf("Length = %d, want 4", before.Length())
	}

	claims := s.claim()
	s.settle(claims[:1], core.Outcome{Kind: core.Done})
	stats, err := s.Stats(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	q := stats[0]
	want = inspect.Counts{Fresh: 1, Claimed: 2, Dead: 1, Processed: 1, Failed: 3, Oldest: epoch.Add(4 * time.Hour)}
	if diff := cmp.Diff(want, q.Counts); diff != "" {
		t.Errorf("Stats with claimed jobs (-want +got):\n%s", diff)
	}
	if !q.Now.Equal(epoch.Add(3*time.Hour)) || q.Queue.Name != "orders" || len(q.Shards) != fixtureShards {
		t.Errorf("Stats = %+v; want the store's clock, the queue and its shards", q)
	}
	var sum inspect.Counts
	for index, shard := range q.Shards {
		if want := (core.Shard{Queue: "orders", Index: index}); shard.Shard != want {
			t.Errorf("shard %d is %v", index, shard.Shard)
		}
		if shard.Owner != "owner" || shard.Token == 0 || !shard.ExpiresAt.After(epoch) {
			t.Errorf("shard %d is leased to %q, token %d, until %v", index, shard.Owner, shard.Token, shard.ExpiresAt)
		}
		sum.Fresh += shard.Fresh
		sum.Claimed += shard.Claimed
		sum.Dead += shard.Dead
		sum.Processed += shard.Processed
		sum.Failed += shard.Failed
	}
	if diff := cmp.Diff(want, sum, cmpopts.IgnoreFields(want, "Oldest", "Lag")); diff != "" {
		t.Errorf("the sum of the shards (-queue +shards):\n%s", diff)
	}
}

// If a server is lost while it has claimed jobs, these are orphans once its leases are over. They
// wait for a server from the end of these leases.
func TestOrphansWaitForAServer(t *testing.T) {
	s := newFixture(t)
	s.pushAll("a", "b", "c", "d")
	s.claim()

	held := inspect.Counts{Claimed: 4}
	s.advance(time.Hour - time.Second)
	if diff := cmp.Diff(held, s.counts()); diff != "" || s.counts().Waiting() != 0 {
		t.Errorf("while the leases last (-want +got):\n%s", diff)
	}

	s.advance(time.Minute + time.Second)
	left := inspect.Counts{Claimed: 4, Orphaned: 4, Lag: time.Minute}
	if diff := cmp.Diff(left, s.counts()); diff != "" || s.counts().Waiting() != 4 || s.counts().Length() != 0 {
		t.Errorf("a minute after the leases have ended (-want +got):\n%s", diff)
	}

	s.push("later", time.Hour, "p")
	s.push("due", -30*time.Second, "p")
	if c := s.counts(); c.Waiting() != 6 || c.Length() != 2 || c.Lag != time.Minute {
		t.Errorf("beside a job that is due for a shorter time: %d wait, %d are queued, lag %v; want 6, 2 and %v",
			c.Waiting(), c.Length(), c.Lag, time.Minute)
	}
	s.push("late", -2*time.Minute, "p") // it waits from its push
	if c := s.counts(); c.Waiting() != 7 || c.Lag != time.Minute {
		t.Errorf("beside a job that is pushed for an earlier time: %d wait, lag %v; want 7 and %v",
			c.Waiting(), c.Lag, time.Minute)
	}

	stats, err := s.Stats(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	for _, shard := range stats[0].Shards {
		if shard.Orphaned > 0 && shard.Lag < time.Minute {
			t.Errorf("%v has %d orphans and lags %v, want a minute or more", shard.Shard, shard.Orphaned, shard.Lag)
		}
	}

	for index, lease := range s.leases {
		if err := s.store.Release(t.Context(), lease.Lease); err != nil {
			t.Fatalf("shard %d: %v", index, err)
		}
	}
	if c := s.counts(); c.Waiting() != 7 || c.Orphaned != 4 {
		t.Errorf("after a release: %d wait, of which %d are orphans; want 7 and 4", c.Waiting(), c.Orphaned)
	}
}

func TestAnEmptyQueueHasNoLagAndNoLease(t *testing.T) {
	s := newFixture(t)
	stats, err := s.Stats(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	for index, shard := range stats[0].Shards {
		if diff := cmp.Diff(inspect.ShardStats{Shard: core.Shard{Queue: "orders", Index: index}}, shard); diff != "" {
			t.Errorf("an empty shard (-want +got):\n%s", diff)
		}
	}
}

func TestStatsAreForTheQueuesNamedOrAll(t *testing.T) {
	s := newFixture(t)
	s.declare("bills", 1)
	s.declare("mails", 1)

	for name, c := range map[string]struct{ ask, want []string }{
		"none": {nil, []string{"bills", "mails", "orders"}},
		"some": {[]string{"orders", "bills"}, []string{"orders", "bills"}},
	} {
		stats, err := s.Stats(t.Context(), c.ask...)
		if err != nil {
			t.Fatal(err)
		}

		var got []string
		for _, q := range stats {
			got = append(got, q.Queue.Name)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s named (-want +got):\n%s", name, diff)
		}
	}
}

// As qless's statistics of a day: waits and runs of each day have a count, a mean, a deviation and a
// histogram, also when the minutes are gone.
func TestHistoryIsByDay(t *testing.T) {
	s := newFixture(t)
	s.clock.Set(epoch.Truncate(inspect.Day).Add(12 * time.Hour))
	first := s.clock.Now().Truncate(inspect.Day)
	for range 40 {
		for range 2 {
			counted := core.Stats{Processed: 4, Failed: 1}
			counted.ObserveWait(time.Second)
			counted.ObserveRun(time.Minute)
			counted.ObserveRun(3 * time.Minute)
			err := s.store.Record(t.Context(), ports.RecordRequest{Owner: "owner", Records: []ports.Record{{
				Queue: "orders", Minute: core.InstantOf(s.clock.Now()).Minute(), Stats: counted,
			}}})
			if err != nil {
				t.Fatal(err)
			}
			s.clock.Advance(12 * time.Hour)
		}
	}
	s.clock.Advance(-12 * time.Hour)

	day := func(n int) time.Time { return first.Add(time.Duration(n) * inspect.Day) }
	for name, c := range map[string]struct {
		from, to    time.Time
		first, last int
	}{
		"all":                  {time.Time{}, time.Time{}, 10, 40},
		"the last week":        {s.clock.Now().Add(-7 * inspect.Day), time.Time{}, 33, 40},
		"from and to in a day": {day(20).Add(time.Hour), day(21).Add(time.Hour), 20, 21},
		"longer ago than kept": {day(1), day(12), 10, 11},
	} {
		days, err := s.History(t.Context(), "orders", inspect.HistoryOptions{From: c.from, To: c.to, Step: inspect.Day})
		if err != nil {
			t.Fatal(err)
		}
		if len(days) != c.last-c.first+1 {
			t.Errorf("%s: %d days are listed, want %d to %d", name, len(days), c.first, c.last)
			continue
		}
		for i, d := range days {
			n := uint64(2) // minutes that were recorded
			if c.first+i == 0 || c.first+i == 40 {
				n = 1
			}
			if !d.At.Equal(day(c.first+i)) || d.Processed != 4*n || d.Failed != n || d.Run.Count() != 2*n {
				t.Errorf("%s: element %d is %v with %d, %d and %d runs", name, i, d.At, d.Processed, d.Failed, d.Run.Count())
			}
			if d.WaitMean != time.Second || d.WaitDeviation != 0 || d.RunMean != 2*time.Minute || d.RunDeviation != time.Minute {
				t.Errorf("%s: %v has means %v and %v and deviations %v and %v; want 1s, 2m, 0 and 1m",
					name, d.At, d.WaitMean, d.RunMean, d.WaitDeviation, d.RunDeviation)
			}
		}
	}
}

func TestHistoryIsByMinute(t *testing.T) {
	s := newFixture(t)
	for range 3 {
		counted := core.Stats{Processed: 4, Failed: 1}
		counted.ObserveWait(time.Second)
		counted.ObserveRun(time.Minute)
		counted.ObserveRun(3 * time.Minute)
		at := core.InstantOf(s.clock.Now()).Minute()
		err := s.store.Record(t.Context(), ports.RecordRequest{
			Owner:   "owner",
			Records: []ports.Record{{Queue: "orders", Minute: at, Stats: counted}},
		})
		if err != nil {
			t.Fatal(err)
		}
		s.advance(time.Minute)
	}

	minute := func(n int) time.Time { return epoch.Add(time.Duration(n) * time.Minute) }
	for name, c := range map[string]struct {
		from, to time.Time
		want     []time.Time
	}{
		"all":             {time.Time{}, time.Time{}, []time.Time{minute(0), minute(1), minute(2)}},
		"from inclusive":  {minute(1), time.Time{}, []time.Time{minute(1), minute(2)}},
		"to exclusive":    {time.Time{}, minute(2), []time.Time{minute(0), minute(1)}},
		"before the Unix": {time.Time{}, time.Unix(-1, 0), nil},
	} {
		minutes, err := s.History(t.Context(), "orders", inspect.HistoryOptions{From: c.from, To: c.to})
		if err != nil {
			t.Fatal(err)
		}

		var got []time.Time
		for _, m := range minutes {
			got = append(got, m.At)
			if m.Processed != 4 || m.Failed != 1 {
				t.Errorf("%s: %v counts %d and %d; want 4 and 1", name, m.At, m.Processed, m.Failed)
			}
			wait, run := m.Wait.Quantile(0.99), m.Run.Quantile(0.99)
			if wait < 750*time.Millisecond || wait > 2*time.Second || run < time.Minute {
				t.Errorf("%s: %v has quantiles %v and %v; want about 1s and 3m", name, m.At, wait, run)
			}
			if m.WaitMean != time.Second || m.WaitDeviation != 0 || m.RunMean != 2*time.Minute ||
				m.RunDeviation != time.Minute {
				t.Errorf("%s: %v has means %v and %v and deviations %v and %v; want 1s, 2m, 0 and 1m",
					name, m.At, m.WaitMean, m.RunMean, m.WaitDeviation, m.RunDeviation)
			}
		}

		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestHistorySumsUpSteps(t *testing.T) {
	s := newFixture(t)
	var records []ports.Record
	start := core.InstantOf(s.clock.Now()).Minute()
	for n := range 10 {
		records = append(records, ports.Record{
			Queue:  "orders",
			Minute: start.Add(-time.Duration(n) * time.Minute),
			Stats:  core.Stats{Processed: 1},
		})
	}

	if err := s.store.Record(t.Context(), ports.RecordRequest{Owner: "owner", Records: records}); err != nil {
		t.Fatal(err)
	}
	steps, err := s.History(t.Context(), "orders", inspect.HistoryOptions{Step: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}

	var sum uint64
	for _, m := range steps {
		sum += m.Processed
		if !m.At.Equal(m.At.Truncate(5 * time.Minute)) {
			t.Errorf("a step begins at %v", m.At)
		}
	}
	if sum != 10 || len(steps) < 2 || len(steps) > 3 {
		t.Errorf("%d jobs in %d steps, want 10 in 2 or 3", sum, len(steps))
	}

	for _, step := range []time.Duration{-time.Minute, time.Second, 25 * time.Hour} {
		if _, err := s.History(t.Context(), "orders",
			inspect.HistoryOptions{Step: step}); !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("a step of %v gives %v, want ErrInvalidOptions", step, err)
		}
	}
}

func TestFindLooksEverywhere(t *testing.T) {
	s := newFixture(t)
	s.push("order-1", 0, "dead", "dead too")
	s.bury()
	s.push("order-1", 0, "claimed")
	s.claim()
	s.advance(time.Minute)
	s.push("order-1", 0, "queued")

	got, err := s.Find(t.Context(), "orders", "order-1")
	if err != nil {
		t.Fatal(err)
	}
	payloads := func(data ...string) []core.Payload {
		var list []core.Payload
		for score, d := range data {
			list = append(list, core.Payload{Data: []byte(d), Score: float64(score)})
		}
		return list
	}
	shard := core.Shard{Queue: "orders", Index: core.ShardOf("order-1", fixtureShards)}
	want := inspect.Found{
		ID: "order-1", Shard: shard,
		Queued: &inspect.QueuedJob{
			ID: "order-1", PerformAt: epoch.Add(time.Minute), FirstPush: epoch.Add(time.Minute),
			Payloads: payloads("queued"), PayloadCount: 1,
		},
		Claimed: &inspect.ClaimedJob{
			QueuedJob: inspect.QueuedJob{
				ID: "order-1", PerformAt: epoch, FirstPush: epoch,
				Payloads: payloads("claimed"), PayloadCount: 1,
			},
			Shard: shard, Owner: "owner", Node: "blue", Since: epoch, LeaseUntil: epoch.Add(time.Hour),
		},
		DeadLetter: &inspect.DeadLetter{
			ID: "order-1", ChangedAt: epoch, Group: core.OtherGroup,
			LastFailure: inspect.LastFailure{LastError: "hopeless", Failures: []inspect.Failure{{Text: "hopeless"}}},
			Payloads:    payloads("dead", "dead too"), PayloadCount: 2,
		},
	}
	ignore := cmp.Options{cmpopts.IgnoreTypes(inspect.Cursor{}), cmpopts.IgnoreFields(inspect.ClaimedJob{}, "Token")}
	if diff := cmp.Diff(want, got, ignore); diff != "" {
		t.Errorf("Find (-want +got):\n%s", diff)
	}
	if got.Claimed.Token == 0 {
		t.Error("the claimed job has no token")
	}
	for name, c := range map[string]inspect.Cursor{
		"queued": got.Queued.Cursor, "claimed": got.Claimed.Cursor, "dead": got.DeadLetter.Cursor,
	} {
		if c == (inspect.Cursor{}) {
			t.Errorf("the %s one has no cursor", name)
		}
	}
}

func TestFindOfNothing(t *testing.T) {
	s := newFixture(t)
	got, err := s.Find(t.Context(), "orders", "order-1")
	if err != nil || got.Queued != nil || got.Claimed != nil || got.DeadLetter != nil {
		t.Errorf("Find = %+v, %v; want nothing", got, err)
	}
	if _, err := s.Find(t.Context(), "orders", ""); !errors.Is(err, inspect.ErrInvalidID) {
		t.Errorf("Find of no id: %v; want ErrInvalidID", err)
	}
}

func TestStoredErrorsAreDecodedWhereverTheyAreShown(t *testing.T) {
	s := newFixture(t)
	s.Inspector = inspect.New(s.store, inspect.Options{DecodeError: func(stored string) string {
		if stored == "" {
			return "DECODED"
		}
		return strings.ToUpper(stored)
	}})

	s.dead("dead")
	s.failed("claimed")
	s.advance(2 * time.Hour)
	s.claim()
	s.failed("queued")
	s.pushAll("fresh")
	s.holds(
		"queued fresh at 2h0m0s retries 0 [p]",
		"queued queued at 3h0m0s retries 1 [p] BOOM",
		"claimed claimed [p]",
		"dead dead at 0s [p] HOPELESS",
	)

	for job := range must(t, s.Claimed(t.Context(), "orders", inspect.ListOptions{})) {
		if job.LastError != "BOOM" {
			t.Errorf("the claimed job has the error %q", job.LastError)
		}
	}

	found, err := s.Find(t.Context(), "orders", "queued")
	if err != nil || found.Queued.LastError != "BOOM" || found.Queued.Failures[0].Text != "BOOM" {
		t.Errorf("Find = %+v, %v; want BOOM", found.Queued, err)
	}

	matched := false
	if _, err := s.Revive(t.Context(), "orders", inspect.AllDead(func(d inspect.DeadLetter) bool {
		matched = d.LastError == "HOPELESS"
		return false
	}, inspect.BulkOptions{})); err != nil || !matched {
		t.Errorf("match is not shown HOPELESS, %v", err)
	}
}
