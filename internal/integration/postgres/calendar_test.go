package postgres_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// schedule returns a schedule of an id that is due at once.
func schedule(id, name string, revision int64) *core.Schedule {
	return &core.Schedule{
		ScheduleKey: core.ScheduleKey{ID: id, Name: name},
		Recurrence:  core.Recurrence{Spec: "every 1h0m0s 0", Data: []byte("report")},
		Next:        1,
		Revision:    revision,
	}
}

// firing returns the change of a schedule to the next revision, with one push.
func firing(id, name string, revision int64) ports.ScheduleChange {
	next := schedule(id, name, revision+1)
	return ports.ScheduleChange{
		ScheduleKey: next.ScheduleKey,
		Revision:    revision,
		Schedule:    next,
		Entries:     []core.Entry{{ID: id, Payload: core.Payload{Data: []byte("report"), Score: float64(revision)}}},
	}
}

func changing(changes ...ports.ScheduleChange) ports.ChangeSchedulesRequest {
	return ports.ChangeSchedulesRequest{Shard: core.Shard{Queue: "orders"}, Shards: 1, Generation: 1, Changes: changes}
}

// change makes changes, and returns their results.
func (w *workbench) change(changes ...ports.ScheduleChange) []ports.ScheduleResult {
	w.t.Helper()
	reply, err := w.store.ChangeSchedules(w.t.Context(), changing(changes...))
	w.must(err)
	return reply.Results
}

// Of several callers that create a schedule at once, one succeeds and the others are refused.
func TestPostgresAScheduleIsCreatedOnce(t *testing.T) {
	t.Parallel()
	const callers, rounds = 6, 30
	w := newWorkbench(t, time.Minute)
	for round := range rounds {
		var group errgroup
		results := make([][]ports.ScheduleResult, callers)
		for i := range callers {
			group.Go(func() error {
				reply, err := w.store.ChangeSchedules(t.Context(), changing(firing(fmt.Sprint(round), "nightly", 0)))
				results[i] = reply.Results
				return err
			})
		}
		w.must(group.Wait())
		slices.SortFunc(results, func(a, b []ports.ScheduleResult) int { return slices.Compare(a, b) })
		want := [][]ports.ScheduleResult{{ports.ScheduleChanged}}
		for range callers - 1 {
			want = append(want, []ports.ScheduleResult{ports.ScheduleRefused})
		}
		w.same("results", results, want)
	}
}

// Changes of schedules, turns and pushes of the same ids never wait for one another in a circle,
// and each revision is fired once.
func TestPostgresFiringsMeetTurnsAndPushes(t *testing.T) {
	t.Parallel()
	const ids, rounds, firers = 12, 60, 3
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	before := w.deadlocks()
	order := func(round int) []string { // another one in each round
		list := make([]string, ids)
		for i := range list {
			list[i] = fmt.Sprint("id-", (i*5+round*7)%ids)
		}
		return list
	}

	var group errgroup
	fired := make([]int, firers)
	for f := range firers {
		group.Go(func() error {
			for round := range int64(rounds) {
				var changes []ports.ScheduleChange
				for _, id := range order(int(round) + f) {
					changes = append(changes, firing(id, "nightly", round))
				}
				reply, err := w.store.ChangeSchedules(t.Context(), changing(changes...))
				if err != nil {
					return err
				}
				for _, result := range reply.Results {
					if result == ports.ScheduleChanged {
						fired[f]++
					}
				}
			}
			return nil
		})
	}
	for p := range 2 {
		group.Go(func() error {
			for round := range rounds {
				if err := w.push(w.store, order(round+p)...); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for range rounds {
		var ends []core.Settlement
		for _, c := range w.next(ids).Claims {
			ends = append(ends, failed(c))
		}
		w.next(0, ends...)
	}
	w.must(group.Wait())

	w.same("firings", fired[0]+fired[1]+fired[2], ids*rounds)
	w.same("deadlocks", w.deadlocks(), before)
	w.same("schedules", w.revisions(), slices.Repeat([]int64{rounds}, ids))
}

// One call handles as many changes as a turn may move payloads, and the others when they are sent
// again.
func TestPostgresChangesOfSchedulesAreBounded(t *testing.T) {
	t.Parallel()
	const per, changes = core.MaxTurnPayloads / core.MaxFiringEntries, 12
	w := newWorkbench(t, time.Minute)
	var rest []ports.ScheduleChange
	for i := range changes {
		c := firing(fmt.Sprintf("id-%03d", i), "nightly", 0)
		c.Entries = slices.Repeat(c.Entries, core.MaxFiringEntries)
		for k := range c.Entries {
			c.Entries[k].Payload.Data = fmt.Append(nil, k)
		}
		rest = append(rest, c)
	}

	var handled []int
	for len(rest) > 0 {
		reply, err := w.store.ChangeSchedules(t.Context(), changing(rest...))
		w.must(err)
		n := len(reply.Results)
		handled, rest = append(handled, n), rest[n:]
		w.same("new and merged", []int{reply.Met.New, reply.Met.Merged}, []int{n, n * (core.MaxFiringEntries - 1)})
	}
	w.same("changes of each call", handled, []int{per, changes - per})
}

// deadlocks returns how many errors of deadlocks the database has counted.
func (w *workbench) deadlocks() (n int64) {
	w.t.Helper()
	w.must(
		w.pool.QueryRow(w.t.Context(),
			`SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()`).Scan(&n),
	)
	return n
}

// revisions returns the revisions of all schedules.
func (w *workbench) revisions() []int64 {
	w.t.Helper()
	rows, err := w.pool.Query(w.t.Context(), `SELECT revision FROM `+w.schema+`.schedules ORDER BY id, name`)
	w.must(err)
	list, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	w.must(err)
	return list
}

// A firing that must not meet a job waits for a push of its id that is under way, and then meets
// the job of that push.
func TestPostgresAFiringMeetsAPushUnderWay(t *testing.T) {
	t.Parallel()
	for name, commit := range map[string]bool{"that commits": true, "that is rolled back": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkbench(t, time.Minute)
			w.change(firing("b", "nightly", 0))
			tx, err := w.pool.Begin(t.Context())
			w.must(err)
			_, err = tx.Exec(t.Context(),
				fmt.Sprintf(`SELECT * FROM %s.push('orders', 1, 1, NULL, 0::smallint, 0, ARRAY[0], ARRAY['a'],
				NULL, NULL, ARRAY[1.0]::float8[], ARRAY['by hand'::bytea], ARRAY[NULL::bytea], NULL, NULL, NULL, NULL, NULL)`,
					w.schema))
			w.must(err)

			skips := firing("a", "nightly", 0)
			skips.Busy = schedule("a", "nightly", 7)
			replies := make(chan ports.ChangeSchedulesReply, 1)
			go func() {
				reply, err := w.store.ChangeSchedules(t.Context(), changing(skips, firing("b", "nightly", 1)))
				if err != nil {
					t.Error(err)
				}
				replies <- reply
			}()
			w.waits("change_schedules", `wait_event_type = 'Lock'`)
			want := []ports.ScheduleResult{ports.ScheduleBusy, ports.ScheduleChanged}
			if commit {
				w.must(tx.Commit(t.Context()))
			} else {
				w.must(tx.Rollback(t.Context()))
				want[0] = ports.ScheduleChanged
			}
			w.same("results", (<-replies).Results, want)
		})
	}
}

// An id is busy with what a transaction has pushed or put back, as long as no turn has merged it.
func TestPostgresAFiringMeetsWhatTransactionsLeft(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	w.acquire("n1")
	skipping := func(id string, revision int64) ports.ScheduleChange {
		c := firing(id, "nightly", revision)
		c.Busy = schedule(id, "nightly", revision+2)
		return c
	}
	w.pushInTx("a")
	w.same("beside a push", w.change(skipping("a", 0)), []ports.ScheduleResult{ports.ScheduleBusy})

	c := w.next(1).Claims[0]
	w.same("beside a claim", w.change(skipping("a", 2)), []ports.ScheduleResult{ports.ScheduleBusy})
	settle := func(s core.Settlement) {
		w.must(pgx.BeginFunc(t.Context(), w.pool, func(tx pgx.Tx) error {
			return w.store.Tx(tx).Settle(t.Context(), w.turn.Lease.Shard, []core.Settlement{s})
		}))
	}
	settle(failed(c))
	w.same("beside a job put back", w.change(skipping("a", 4)), []ports.ScheduleResult{ports.ScheduleBusy})

	settle(done(w.next(1).Claims[0]))
	w.same("beside nothing", w.change(skipping("a", 6)), []ports.ScheduleResult{ports.ScheduleChanged})
}

// fillSchedules makes n schedules in a shard, with the given number of names and the ticks 1 to n.
// Each has 1,000 bytes, so that they fill many pages.
func (v *viewed) fillSchedules(shard, n, names int) {
	v.t.Helper()
	kit.Exec(v.t, v.pool, fmt.Sprintf(`
		ALTER TABLE %[1]s.schedules SET (autovacuum_enabled = off);
		ALTER TABLE %[1]s.schedule_names SET (autovacuum_enabled = off);
		INSERT INTO %[1]s.schedules (shard, id, name, tick, revision, record)
		SELECT %[2]d, 'id-' || g, 'name-' || g %% %[4]d, g, 1, json_build_object('id', 'id-' || g, 'name', 'name-' || g %% %[4]d, 'revision', 1, 'spec', 'every 1h0m0s 0',
			'data', repeat('aaaa', 200)) FROM generate_series(1, %[3]d) g;
		INSERT INTO %[1]s.schedule_names SELECT shard, name, count(*) FROM %[1]s.schedules WHERE shard = %[2]d GROUP BY shard, name`,
		v.schema, shard, n, names))
}

// Ticks, pages and changes read little beside many schedules, before the first analyze and after
// it.
func TestPostgresSchedulesAreReadByIndex(t *testing.T) {
	t.Parallel()
	const schedules, most = 30_000, 1500
	for name, analyzed := range plannedFor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := newViewed(t, 2)
			kit.Exec(t, v.pool, fmt.Sprintf(`ANALYZE %[1]s.schedules, %[1]s.schedule_names`, v.schema))
			own := idInShard(0, 2)
			v.fillSchedules(0, schedules, 30)
			v.fillSchedules(1, schedules, 3)
			if analyzed {
				kit.Exec(t, v.pool, fmt.Sprintf(`ANALYZE %[1]s.schedules, %[1]s.schedule_names`, v.schema))
			}

			tracer := &seen{}
			s := v.openAs("schedules", postgres.Options{NoWakeups: true}, func(c *pgxpool.Config) {
				c.ConnConfig.Tracer = tracer
			})
			ctx := t.Context()
			list := func(r ports.SchedulesRequest, want int) {
				r.Queue = "orders"
				page, err := s.Schedules(ctx, r)
				v.must(err)
				if len(page.Schedules) != want {
					t.Errorf("%+v lists %d schedules, want %d", r, len(page.Schedules), want)
				}
			}
			ticks, err := s.Ticks(ctx, ports.TicksRequest{Shards: core.Shards("orders", 2), Limit: 100})
			v.must(err)
			for _, shard := range ticks.Shards {
				if len(shard.Due) != 100 || shard.Head != (core.Head{Due: 1, OK: true}) {
					t.Errorf("a shard has %d due schedules and the head %+v", len(shard.Due), shard.Head)
				}
			}
			list(ports.SchedulesRequest{}, 100)
			list(ports.SchedulesRequest{After: core.ScheduleKey{ID: "id-5", Name: "name-2"}}, 100)
			list(ports.SchedulesRequest{Name: "name-2"}, 100)
			list(ports.SchedulesRequest{Name: "name-2", After: core.ScheduleKey{ID: "id-5", Name: "name-2"}}, 100)
			list(ports.SchedulesRequest{ID: own, Shards: []int{0, 1}}, 0)
			names, err := s.ScheduleNames(ctx, ports.ScheduleNamesRequest{Queue: "orders"})
			v.must(err)
			if len(names.Names) != 30 || names.Names[0].Count != schedules/30+schedules/3 ||
				names.Names[0].First.ID != "id-10002" {
				t.Errorf("%d names, the first has %d schedules, of %q first",
					len(names.Names), names.Names[0].Count, names.Names[0].First.ID)
			}
			r := changing(firing(own, "nightly", 0))
			r.Shards = 2
			reply, err := s.ChangeSchedules(ctx, r)
			v.must(err)
			if !slices.Equal(reply.Results, []ports.ScheduleResult{ports.ScheduleChanged}) {
				t.Errorf("a change is %v", reply.Results)
			}

			for _, q := range tracer.sent() {
				if n := pagesRead(t, v.pool, v.schema, q.SQL, q.Args...); n > most {
					t.Errorf("%d pages are read by %s", n, q.SQL)
				}
			}
		})
	}
}

// A record that can't be read is set aside by the call that meets it, and stops no other schedule.
func TestPostgresADamagedScheduleIsSetAside(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	shard := w.turn.Lease.Shard
	w.change(firing("a", "nightly", 0), firing("b", "nightly", 0), firing("c", "nightly", 0), firing("d", "nightly", 0),
		firing("e", "hourly", 0))
	kit.Exec(t, w.pool,
		fmt.Sprintf(`UPDATE %[1]s.schedules SET record = '{"id": "a", "name": "nightly", "next": "soon"}' WHERE id = 'a';
		UPDATE %[1]s.schedules SET record = (SELECT record FROM %[1]s.schedules WHERE id = 'b'), tick = NULL WHERE id IN ('c', 'd');
		UPDATE %[1]s.schedules SET record = '[]', tick = NULL WHERE id = 'e'`, w.schema))

	page, err := w.store.Schedules(t.Context(), ports.SchedulesRequest{Queue: "orders"})
	w.must(err)
	w.same("listed", len(page.Schedules), 1)
	names, err := w.store.ScheduleNames(t.Context(), ports.ScheduleNamesRequest{Queue: "orders"})
	w.must(err)
	w.same("names", len(names.Names), 2)
	w.same("the first of a name that can't be read", names.Names[0].First.Revision, int64(0))
	w.same("the first of the name", names.Names[1].First.ID, "b")
	w.same("set aside by lists", w.quarantined(), []string(nil))

	ticks, err := w.store.Ticks(t.Context(), ports.TicksRequest{Shards: []core.Shard{shard}, Limit: 10})
	w.must(err)
	w.same("due", []string{ticks.Shards[0].Due[0].ID}, []string{"b"})
	w.same("set aside by Ticks", w.quarantined(), []string{"a"})
	removal := ports.ScheduleChange{
		ScheduleKey: core.ScheduleKey{ID: "d", Name: "nightly"}, Revision: ports.AnyRevision,
	}
	w.same("changes", w.change(firing("c", "nightly", 0), removal, firing("b", "nightly", 0)),
		[]ports.ScheduleResult{ports.ScheduleChanged, ports.ScheduleRefused, ports.ScheduleRefused})
	w.same("set aside by changes", w.quarantined(), []string{"a", "c", "d"})

	stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	w.must(err)
	w.same("counted", stats[0].Quarantined, int64(3))
	recounted, err := kit.Recounted(t.Context(), w.store, shard)
	w.must(err)
	w.same("recounted", recounted.After.Quarantined, int64(4)) // and the hourly one
	w.discardAll(shard)
	w.same("after Discard", w.quarantined(), []string(nil))
}

// A record that this version does not allow is set aside, and the others of its page are listed and
// due. A schedule can be created in its place at once.
func TestPostgresAScheduleThatIsNotAllowedStopsNoOther(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	shard := w.turn.Lease.Shard
	w.change(firing("a", "nightly", 0), firing("b", "nightly", 0), firing("c", "nightly", 0))
	kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %s.schedules
		SET record = jsonb_set(record::jsonb, '{catchup}', '{"most": 5000}')::json WHERE id IN ('a', 'c')`, w.schema))

	page, err := w.store.Schedules(t.Context(), ports.SchedulesRequest{Queue: "orders"})
	w.must(err)
	w.same("listed", []string{page.Schedules[0].ID}, []string{"b"})
	w.same("a creation in its place",
		w.change(firing("a", "nightly", 0)), []ports.ScheduleResult{ports.ScheduleChanged})
	ticks, err := w.store.Ticks(t.Context(), ports.TicksRequest{Shards: []core.Shard{shard}, Limit: 10})
	w.must(err)
	w.same("due", len(ticks.Shards[0].Due), 2)
	w.same("set aside", w.quarantined(), []string{"a", "c"})
}

// A record that can't be read is set aside by a recount, also if it is not due. Until then it is
// counted by its name, and the First of the name is one that can be read, or the zero value.
func TestPostgresARecountSetsDamagedSchedulesAside(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	const many = 250
	for i := range many {
		w.change(firing(fmt.Sprintf("id-%03d", i), "nightly", 0))
	}
	w.change(firing("a", "hourly", 0))
	kit.Exec(t, w.pool, fmt.Sprintf(`UPDATE %[1]s.schedules SET tick = NULL;
		UPDATE %[1]s.schedules SET record = jsonb_set(record::jsonb, '{catchup}', '{"most": 5000}')::json
		WHERE id IN ('a', 'id-000', 'id-120', 'id-249')`, w.schema))

	names := func() (got []string) {
		page, err := w.store.ScheduleNames(t.Context(), ports.ScheduleNamesRequest{Queue: "orders"})
		w.must(err)
		for _, n := range page.Names {
			got = append(got, fmt.Sprintf("%d %s, first of %q", n.Count, n.Name, n.First.ID))
			if n.First.ID == "" && !reflect.DeepEqual(n.First, core.Schedule{}) {
				t.Errorf("a First that can't be read is %+v", n.First)
			}
		}
		return got
	}
	w.same("names", names(), []string{`1 hourly, first of ""`, `250 nightly, first of "id-001"`})
	w.same("set aside by lists", len(w.quarantine()), 0)

	recounted, err := kit.Recounted(t.Context(), w.store, w.turn.Lease.Shard)
	w.must(err)
	w.same("counted before", recounted.Before.Quarantined, int64(0))
	w.same("counted after", recounted.After.Quarantined, int64(4))
	var aside []string
	for _, r := range w.quarantine() {
		aside = append(aside, r.ID)
	}
	slices.Sort(aside)
	w.same("set aside", aside, []string{"a", "id-000", "id-120", "id-249"})
	w.same("names after it", names(), []string{`247 nightly, first of "id-001"`})
	again, err := kit.Recounted(t.Context(), w.store, w.turn.Lease.Shard)
	w.must(err)
	w.same("counted by a repeat", again.Before.Quarantined, int64(4))
}

// quarantined returns the ids of the records that the shard has set aside.
func (w *workbench) quarantined() (ids []string) {
	w.t.Helper()
	for _, r := range w.quarantine() {
		if r.Place != ports.PlaceSchedule || r.Size != len(r.Stored) ||
			!strings.HasPrefix(r.Reason, "schedule nightly: it") ||
			strings.Contains(r.Reason, "json") ||
			!strings.HasSuffix(r.Reason, "; create the schedule again, and discard this record") || r.Since == 0 {
			w.t.Errorf("a record that was set aside: %+v", r)
		}
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// quarantine returns the records that the shard has set aside, by pages of one.
func (w *workbench) quarantine() (all []ports.QuarantinedRecord) {
	w.t.Helper()
	r := ports.QuarantineRequest{Shard: w.turn.Lease.Shard, Limit: 1}
	for {
		page, err := w.store.Quarantined(w.t.Context(), r)
		w.must(err)
		all = append(all, page.Records...)
		if r.After = page.Next; r.After == "" {
			break
		}
	}
	shards, err := w.store.QuarantinedShards(w.t.Context(), ports.QuarantinedShardsRequest{Queue: "orders"})
	w.must(err)
	w.same("whether the shard has set records aside", len(shards.Shards) > 0, len(all) > 0)
	return all
}

// discardAll discards all that was set aside. Until then Forget finds the queue not empty.
func (w *workbench) discardAll(shard core.Shard) {
	w.t.Helper()
	if err := w.store.Forget(w.t.Context(), "orders"); !errors.Is(err, ports.ErrNotEmpty) {
		w.t.Errorf("Forget: %v", err)
	}
	keys := []string{"not there"}
	for _, r := range w.quarantine() {
		keys = append(keys, r.Key)
	}
	for _, want := range []int{len(keys) - 1, 0} {
		n, err := w.store.Discard(w.t.Context(), ports.DiscardRequest{Shard: shard, Keys: keys})
		w.must(err)
		w.same("discarded", n, want)
	}
}
