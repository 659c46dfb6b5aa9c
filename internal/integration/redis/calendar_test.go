package redis_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// field is how the store names a schedule in its hash.
func field(id, name string) string { return id + "\x00" + name }

// scheduled returns a schedule with revision 1 whose next tick is at a time, the zero time for
// none.
func scheduled(id, name string, next time.Time) core.Schedule {
	s := core.Schedule{
		ScheduleKey: core.ScheduleKey{ID: id, Name: name},
		Recurrence:  core.Recurrence{Spec: "every 1h0m0s 0", Data: []byte("report")},
		Next:        core.MaxInstant,
		Revision:    1,
	}
	if !next.IsZero() {
		s.Next = core.InstantOf(next)
	}
	return s
}

// created is a change that creates a schedule.
func created(s core.Schedule) ports.ScheduleChange {
	return ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Schedule: &s}
}

// openQuiet is openFrozen without a log.
func openQuiet(client goredis.UniversalClient) *redis.Store {
	clock := func() time.Time { return frozenNow }
	return redis.New(client, redis.Options{Clock: clock, Logger: slog.New(slog.DiscardHandler)})
}

// withEntries is a change with entries.
func withEntries(c ports.ScheduleChange, entries ...core.Entry) ports.ScheduleChange {
	c.Entries = entries
	return c
}

// removed is a change that removes a schedule.
func removed(id, name string) ports.ScheduleChange {
	return ports.ScheduleChange{ScheduleKey: core.ScheduleKey{ID: id, Name: name}, Revision: ports.AnyRevision}
}

// fired is a change of a schedule with revision 1 that pushes entries of its id.
func fired(id, name string, entries ...core.Entry) ports.ScheduleChange {
	s := scheduled(id, name, frozenNow.Add(time.Hour))
	s.Revision = 2
	c := ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: 1, Schedule: &s}
	return withEntries(c, entries...)
}

// skipping is a change that does not push if its id is busy.
func skipping(c ports.ScheduleChange) ports.ScheduleChange {
	busy := *c.Schedule
	busy.Skipped++
	c.Busy = &busy
	return c
}

func (w *worker) changesOf(changes ...ports.ScheduleChange) ports.ChangeSchedulesRequest {
	return ports.ChangeSchedulesRequest{Shard: w.shard, Shards: 1, Generation: 1, Changes: changes}
}

func (w *worker) changeSchedules(changes ...ports.ScheduleChange) error {
	reply, err := w.store.ChangeSchedules(w.t.Context(), w.changesOf(changes...))
	if err == nil && len(reply.Results) != len(changes) {
		return fmt.Errorf("%d of %d changes were handled", len(reply.Results), len(changes))
	}
	return err
}

// due returns the due schedules of the worker's shard, and its head.
func (w *worker) due(limit int) ports.ShardTicks {
	w.t.Helper()
	reply, err := w.store.Ticks(w.t.Context(), ports.TicksRequest{Shards: []core.Shard{w.shard}, Limit: limit})
	w.must(err)
	return reply.Shards[0]
}

func calendarCalls() []scriptCall {
	change := func(name string, filled bool, changes ...ports.ScheduleChange) scriptCall {
		return scriptCall{name, "change_schedules", filled, func(w *worker) error {
			return w.changeSchedules(changes...)
		}}
	}
	late := one("a", 5)
	late.When = core.At(core.InstantOf(frozenNow.Add(-time.Minute)))
	return []scriptCall{
		change("create the first schedule", false, created(scheduled("new", "nightly", frozenNow))),
		change("create schedules", true,
			created(scheduled("new", "nightly", frozenNow)), created(scheduled("a", "other", time.Time{}))),
		change("remove a schedule", true, removed("a", "due"), removed("nobody", "x")),
		change("remove all schedules", true, removed("a", "due"), removed("idle", "never")),
		change("fire onto a claimed job", true, fired("a", "due", late)),
		change("fire onto a large job", true, created(scheduled("large", "x", frozenNow)), fired("a", "due"),
			withEntries(created(scheduled("large", "y", frozenNow)), many("large", 21)...)),
		change("fire beside a busy id", true, skipping(fired("a", "due", late))),
		change("fire for a new id", true,
			withEntries(created(scheduled("c", "y", frozenNow)), one("c", 1))),
		{"ticks", "ticks", true, func(w *worker) error {
			_, err := w.store.Ticks(w.t.Context(), ports.TicksRequest{Shards: []core.Shard{w.shard}, Limit: 10})
			return err
		}},
		{"next ticks", "next_ticks", true, func(w *worker) error {
			_, err := w.store.Ticks(w.t.Context(), ports.TicksRequest{Shards: []core.Shard{w.shard, w.shard}})
			return err
		}},
		{"list schedules", "schedules", true, func(w *worker) error {
			_, err := w.store.Schedules(w.t.Context(), ports.SchedulesRequest{Queue: "orders"})
			return err
		}},
		{"list names of schedules", "schedule_names", true, func(w *worker) error {
			_, err := w.store.ScheduleNames(w.t.Context(), ports.ScheduleNamesRequest{Queue: "orders"})
			return err
		}},
		{"set aside a schedule", "set_aside_schedule", true, func(w *worker) error {
			return w.changeSchedules(removed("a", "due"))
		}},
		{"correct an early tick", "relist_schedule", true, func(w *worker) error {
			_, err := w.store.Ticks(w.t.Context(), ports.TicksRequest{Shards: []core.Shard{w.shard}, Limit: 10})
			return err
		}},
		{"lose a schedule", "set_aside_schedule", true, func(w *worker) error {
			_, err := w.store.Ticks(w.t.Context(), ports.TicksRequest{Shards: []core.Shard{w.shard}, Limit: 10})
			return err
		}},
	}
}

// Damaged schedules are set aside by the call that meets them, and the others of the shard still
// tick.
func TestRedisADamagedScheduleStopsNoOther(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for name, damaged := range map[string]string{
		"no JSON":         "?",
		"no object":       "1",
		"another":         `{"id":"b","name":"x","revision":1,"tick":1}`,
		"of no revision":  `{"id":"a","name":"x","tick":1}`,
		"of another type": `{"id":"a","name":"x","revision":1,"tick":1,"spec":5}`,
		"not allowed":     `{"id":"a","name":"x","revision":1,"tick":1,"spec":"every 1h0m0s 0","catchup":{"most":5000}}`,
		"cut":             `{"id":"a","name":"x","revision":1`,
		"empty":           "",
	} {
		for meets, meet := range map[string]func(w *worker){
			"ticks":   func(w *worker) { w.due(1) },
			"recount": func(w *worker) { _, err := kit.Recounted(t.Context(), w.store, w.shard); must(t, err) },
			"change": func(w *worker) {
				reply, err := w.store.ChangeSchedules(t.Context(), w.changesOf(removed("a", "x")))
				if err != nil || cmp.Diff(reply.Results, []ports.ScheduleResult{ports.ScheduleRefused}) != "" {
					t.Errorf("a removal of a record that is %s returned %v, %v", name, reply.Results, err)
				}
			},
		} {
			must(t, client.FlushAll(t.Context()).Err())
			w := newWorker(t, client, false)
			w.store = openQuiet(client)
			must(t, w.changeSchedules(
				created(scheduled("a", "x", frozenNow.Add(-time.Hour))), created(scheduled("c", "x", frozenNow))))
			must(t, client.HSet(t.Context(), key("s"), field("a", "x"), damaged).Err())

			meet(w)
			ticks := w.due(10)
			if len(ticks.Due) != 1 || ticks.Due[0].ID != "c" || ticks.Head.Due != core.InstantOf(frozenNow) {
				t.Errorf("%s, beside a record that is %s: the ticks are %+v", meets, name, ticks)
			}
			for _, r := range w.aside("a") {
				if r.Place != ports.PlaceSchedule || string(r.Stored) != damaged ||
					!strings.HasPrefix(r.Reason, "schedule x: it") || strings.Contains(r.Reason, "json") ||
					!strings.HasSuffix(r.Reason, "; create the schedule again, and discard this record") ||
					strings.Contains(r.Key, "\x00") {
					t.Errorf("%s: a record that is %s is set aside as %+v", meets, name, r)
				}
				n, err := w.store.Discard(t.Context(), ports.DiscardRequest{Shard: w.shard, Keys: []string{r.Key}})
				if n != 1 || err != nil {
					t.Errorf("Discard returned %d, %v", n, err)
				}
			}
			names, err := w.store.ScheduleNames(t.Context(), ports.ScheduleNamesRequest{Queue: "orders"})
			if err != nil || len(names.Names) != 1 || names.Names[0].Count != 1 || names.Names[0].First.ID != "c" {
				t.Errorf("%s: the names are %+v, %v", meets, names.Names, err)
			}
		}
	}
}

// A record that this version does not allow is set aside, and the others of its page are listed and
// due. A schedule can be created in its place at once.
func TestRedisAScheduleThatIsNotAllowedStopsNoOther(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	w.store = openQuiet(client)
	due := frozenNow.Add(-time.Hour)
	for _, id := range []string{"a", "b", "c"} {
		must(t, w.changeSchedules(created(scheduled(id, "x", due))))
	}
	for _, id := range []string{"a", "c"} {
		stored, err := client.HGet(t.Context(), key("s"), field(id, "x")).Result()
		must(t, err)
		must(t, client.HSet(t.Context(), key("s"), field(id, "x"),
			strings.Replace(stored, "{", `{"catchup":{"most":5000},`, 1)).Err())
	}

	page, err := w.store.Schedules(t.Context(), ports.SchedulesRequest{Queue: "orders"})
	if err != nil || len(page.Schedules) != 1 || page.Schedules[0].ID != "b" {
		t.Errorf("Schedules returned %+v, %v", page.Schedules, err)
	}
	reply, err := w.store.ChangeSchedules(t.Context(),
		w.changesOf(created(scheduled("b", "x", due)), created(scheduled("a", "x", due))))
	want := []ports.ScheduleResult{ports.ScheduleRefused, ports.ScheduleChanged}
	if err != nil || cmp.Diff(reply.Results, want) != "" {
		t.Errorf("creations returned %v, %v; want %v", reply.Results, err, want)
	}
	if ticks := w.due(10); len(ticks.Due) != 2 || ticks.Due[0].ID != "a" || ticks.Due[1].ID != "b" {
		t.Errorf("the ticks are %+v", ticks)
	}
	for _, r := range w.aside("a", "c") {
		if !strings.Contains(r.Reason, "give 1 to 1000") {
			t.Errorf("it is set aside as %+v", r)
		}
	}
}

// A record that only the store's decoder refuses is set aside by a recount and by a removal also if
// it is not due. Until then it is counted by its name, and the First of the name is one that can be
// read, or the zero value.
func TestRedisADamagedScheduleThatIsNotDueIsSetAside(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	w.store = openQuiet(client)
	later := frozenNow.Add(time.Hour)
	for i := range 250 {
		must(t, w.changeSchedules(created(scheduled(fmt.Sprintf("id-%03d", i), "x", later))))
	}
	must(t, w.changeSchedules(created(scheduled("a", "y", later)), created(scheduled("never", "z", time.Time{}))))
	damage := func(id, name string) {
		stored, err := client.HGet(t.Context(), key("s"), field(id, name)).Result()
		must(t, err)
		must(t, client.HSet(t.Context(), key("s"), field(id, name),
			strings.Replace(stored, "{", `{"catchup":{"most":5000},`, 1)).Err())
	}
	damage("id-000", "x")
	damage("id-120", "x")
	damage("a", "y")
	damage("never", "z")

	names := func(want ...ports.ScheduleName) {
		t.Helper()
		page, err := w.store.ScheduleNames(t.Context(), ports.ScheduleNamesRequest{Queue: "orders"})
		must(t, err)
		if diff := cmp.Diff(want, page.Names); diff != "" {
			t.Errorf("the names (-want +got):\n%s", diff)
		}
	}
	before, first := allContents(t, client), scheduled("id-001", "x", later)
	names(ports.ScheduleName{Name: "x", Count: 250, First: first}, ports.ScheduleName{Name: "y", Count: 1},
		ports.ScheduleName{Name: "z", Count: 1})
	if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
		t.Errorf("a list has written (-before +after):\n%s", diff)
	}

	reply, err := w.store.ChangeSchedules(t.Context(), w.changesOf(removed("never", "z")))
	if err != nil || cmp.Diff(reply.Results, []ports.ScheduleResult{ports.ScheduleRefused}) != "" {
		t.Errorf("a removal of any revision returned %v, %v", reply.Results, err)
	}
	w.aside("never")

	r := ports.RecountRequest{Shard: w.shard, Limit: 20}
	recounted, err := kit.RecountedAround(t.Context(), w.store, r, func() {})
	must(t, err)
	if recounted.Before.Quarantined != 1 || recounted.After.Quarantined != 4 {
		t.Errorf("a recount counts %d and then %d records that were set aside, want 1 and 4",
			recounted.Before.Quarantined, recounted.After.Quarantined)
	}
	w.aside("a", "id-000", "id-120", "never")
	names(ports.ScheduleName{Name: "x", Count: 248, First: first})
}

// Lists leave out a schedule that they can't read, and write nothing. A schedule whose record is
// lost is set aside by Ticks.
func TestRedisListsLeaveOutDamagedSchedules(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	w.store = openQuiet(client)
	for _, id := range []string{"a", "b", "c"} {
		must(t, w.changeSchedules(created(scheduled(id, "x", frozenNow))))
	}
	must(t, client.HSet(t.Context(), key("s"), field("a", "x"), "?").Err())
	must(t, client.HDel(t.Context(), key("s"), field("b", "x")).Err())

	before := allContents(t, client)
	page, err := w.store.Schedules(t.Context(), ports.SchedulesRequest{Queue: "orders"})
	if err != nil || len(page.Schedules) != 1 || page.Schedules[0].ID != "c" {
		t.Errorf("Schedules returned %+v, %v; want the one that can be read", page.Schedules, err)
	}
	_, err = w.store.ScheduleNames(t.Context(), ports.ScheduleNamesRequest{Queue: "orders"})
	must(t, err)
	if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
		t.Errorf("lists have written (-before +after):\n%s", diff)
	}

	if ticks := w.due(10); len(ticks.Due) != 1 || ticks.Due[0].ID != "c" {
		t.Errorf("the ticks are %+v", ticks)
	}
	if r := w.aside("a", "b"); len(r) == 2 && (r[1].Size != 0 || !strings.Contains(r[1].Reason, "lost")) {
		t.Errorf("a lost record is set aside as %+v", r[1])
	}
}

// An entry of the list of ticks that is too early is corrected by the look that finds its schedule
// not due, so that the shard is not looked at again and again.
func TestRedisAnEarlyTickIsCorrected(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	later := frozenNow.Add(time.Hour)
	must(t, w.changeSchedules(created(scheduled("a", "x", later)), created(scheduled("b", "x", time.Time{})),
		created(scheduled("c", "x", frozenNow))))
	want := allContents(t, client)

	for _, id := range []string{"a", "b"} {
		must(t, client.ZAdd(t.Context(), key("st"), goredis.Z{Score: 5, Member: field(id, "x")}).Err())
	}
	ticks := w.due(10)
	if len(ticks.Due) != 1 || ticks.Due[0].ID != "c" || ticks.Head.Due != core.InstantOf(frozenNow) {
		t.Errorf("the ticks are %+v", ticks)
	}
	if diff := cmp.Diff(want, allContents(t, client)); diff != "" {
		t.Errorf("after a look (-want +got):\n%s", diff)
	}

	must(t, w.changeSchedules(removed("c", "x")))
	must(t, client.ZAdd(t.Context(), key("st"), goredis.Z{Score: 5, Member: field("a", "x")}).Err())
	if ticks := w.due(1); len(ticks.Due) != 0 || ticks.Head.Due != core.InstantOf(later) {
		t.Errorf("the ticks are %+v", ticks)
	}
}

// A recount rebuilds the lists of schedules, in several steps if there are many, so that none stops
// silently.
func TestRedisRecountRebuildsTheListsOfSchedules(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for name, faults := range map[string][][]any{
		"no list":         {{"del", key("st")}, {"del", key("sn")}},
		"no ticks":        {{"del", key("st")}},
		"no names":        {{"del", key("sn")}},
		"a missing name":  {{"zrem", key("sn"), "nx\x00id-007"}, {"zrem", key("sn"), "i" + field("id-008", "x")}},
		"other ticks":     {{"zadd", key("st"), 5, field("id-001", "x")}, {"zadd", key("st"), 7, field("nobody", "x")}},
		"a tick too many": {{"zadd", key("st"), 5, field("idle", "x")}},
		"names of nobody": {
			{"zadd", key("sn"), 0, "nx\x00nobody"},
			{"zadd", key("sn"), 0, "inobody\x00x"},
			{"zadd", key("sn"), 0, "other"},
		},
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, false)
		for i := range 250 {
			next := frozenNow.Add(time.Duration(i-100) * time.Minute)
			must(t, w.changeSchedules(created(scheduled(fmt.Sprintf("id-%03d", i), "x", next))))
		}
		must(t, w.changeSchedules(created(scheduled("idle", "x", time.Time{}))))
		before := allContents(t, client)
		for _, fault := range faults {
			must(t, client.Do(t.Context(), fault...).Err())
		}

		steps := 0
		r := ports.RecountRequest{Shard: w.shard, Limit: 50}
		_, err := kit.RecountedAround(t.Context(), w.store, r, func() { steps++ })
		must(t, err)
		if steps < 5 {
			t.Errorf("%s: %d steps, want several", name, steps)
		}
		if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
			t.Errorf("what is left of %s (-before +after):\n%s", name, diff)
		}
	}
}

// A recount names a key of schedules that another program has overwritten.
func TestRedisRecountNamesOverwrittenKeysOfSchedules(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for _, suffix := range []string{"s", "st", "sn"} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, true)
		must(t, client.Set(t.Context(), key(suffix), "?", 0).Err())
		_, err := kit.Recounted(t.Context(), w.store, w.shard)
		if !errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), key(suffix)+" ") {
			t.Errorf("with %s overwritten, Recount returned %v", key(suffix), err)
		}
	}
}

// A call handles the first changes of a request that has many large entries, and at least one,
// however large the job of its id is.
func TestRedisChangesOfSchedulesAreBounded(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	large := func(id string, n, size int) (entries []core.Entry) {
		for i := range n {
			e := one(id, float64(i))
			e.Data = append(e.Data, make([]byte, size)...)
			entries = append(entries, e)
		}
		return entries
	}
	firing := func(id string, n, size int) ports.ScheduleChange {
		return withEntries(created(scheduled(id, "x", frozenNow)), large(id, n, size)...)
	}
	for _, e := range large("huge", 1, 9<<20) {
		must(t, w.push(e))
	}

	for _, tt := range []struct {
		name    string
		changes []ports.ScheduleChange
		handled int
	}{
		{"the job of the first is huge", []ports.ScheduleChange{firing("huge", 100, 10), firing("huge-2", 1, 10)}, 1},
		{"many entries", []ports.ScheduleChange{
			firing("b1", 100, 1),
			firing("b2", 100, 1),
			firing("b3", 100, 1),
			firing("b4", 100, 1),
			firing("b5", 100, 1),
			firing("b6", 1, 1),
		}, 5},
		{"large entries", []ports.ScheduleChange{firing("c1", 100, 60<<10), firing("c2", 100, 60<<10)}, 1},
	} {
		reply, err := w.store.ChangeSchedules(t.Context(), w.changesOf(tt.changes...))
		must(t, err)
		pushed := 0
		for _, c := range tt.changes[:len(reply.Results)] {
			pushed += len(c.Entries)
		}
		met := reply.Met
		if len(reply.Results) != tt.handled || met.New+met.Merged+met.Duplicate != pushed {
			t.Errorf("%s: the results are %v, and the entries met %+v; want %d results",
				tt.name, reply.Results, met, tt.handled)
		}
		stored, err := client.HExists(t.Context(), key("s"), field(tt.changes[len(tt.changes)-1].ID, "x")).Result()
		if stored || err != nil {
			t.Errorf("%s: the last change was made, %v", tt.name, err)
		}
	}
}

// A shard that has a schedule takes the same commands for pushes, turns and renewals as one
// without.
func TestRedisAScheduleAddsNoCommandToTurns(t *testing.T) {
	t.Parallel()
	commands := func(schedules ...ports.ScheduleChange) map[string]string {
		client := testservers.OwnRedis(t).(*goredis.Client)
		w := newWorker(t, client, false)
		w.must(w.changeSchedules(schedules...))
		must(t, client.ConfigResetStat(t.Context()).Err())

		for i := range 20 {
			w.must(w.push(one(fmt.Sprint("id-", i), 1), one("a", float64(i))))
			w.must(w.turn(ports.TurnRequest{Want: 2}))
			w.must(w.turn(ports.TurnRequest{Settlements: w.settle(fmt.Sprint("id-", i), core.Outcome{})}))
			_, err := w.store.Renew(t.Context(), ports.RenewRequest{Lease: w.lease, TTL: time.Minute})
			w.must(err)
		}
		info, err := client.Info(t.Context(), "commandstats").Result()
		must(t, err)
		calls := map[string]string{}
		for line := range strings.Lines(info) {
			if command, rest, ok := strings.Cut(line, ":calls="); ok {
				calls[command], _, _ = strings.Cut(rest, ",")
			}
		}
		if len(calls) < 5 {
			t.Errorf("few commands were counted: %v", calls)
		}
		return calls
	}
	none := commands()
	with := commands(created(scheduled("a", "nightly", frozenNow.Add(time.Hour))),
		created(scheduled("id-3", "x", frozenNow.Add(time.Hour))))
	if diff := cmp.Diff(none, with); diff != "" {
		t.Errorf("commands without schedules and with two (-without +with):\n%s", diff)
	}
}
