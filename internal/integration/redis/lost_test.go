package redis_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// loss is a part of a job or a dead letter that a fault of Redis or a person has removed or
// replaced.
type loss struct {
	name string
	do   []any // a command on keys of the shard
	id   string
	// aside is set if something is set aside for the id, rather than listed anew.
	aside bool
}

func key(suffix string) string { return "skein:{orders/0}:" + suffix }

// lostParts returns losses of a shard that newWorker has filled.
func lostParts() []loss {
	return []loss{
		{"a job's payloads", []any{"del", key("p:whole")}, "whole", true},
		{"a job's payloads that have Metas", []any{"del", key("p:large")}, "large", true},
		{"a job's payloads are a text", []any{"set", key("p:whole"), "text"}, "whole", true},
		{
			"a job's payloads are a list",
			[]any{"eval", "redis.call('del', KEYS[1]) return redis.call('rpush', KEYS[1], 'a')", 1, key("p:large")},
			"large",
			true,
		},
		{"a job's record", []any{"hdel", key("j"), "plain"}, "plain", true},
		{"the record of a job of many payloads", []any{"hdel", key("j"), "whole"}, "whole", true},
		{"a job's place in the list", []any{"zrem", key("r"), "plain"}, "plain", false},
		{"a failed job's place in the list", []any{"zrem", key("r"), "failed"}, "failed", false},
		{"a waiting job's place in the list", []any{"zrem", key("w"), "a"}, "a", false},
		{"a dead letter's payloads", []any{"del", key("d:gone")}, "gone", true},
		{"a dead letter's payloads are a text", []any{"set", key("d:gone"), "text"}, "gone", true},
		{"a dead letter's record", []any{"hdel", key("x"), "gone"}, "gone", true},
		{"a dead letter's place in the list", []any{"zrem", key("xt"), "buried"}, "buried", false},
	}
}

// Whatever a job or a dead letter has lost, no turn and no step fails for it, each does the rest
// of its work, and the rest of the record is set aside or listed anew. After a Recount the counts
// match the present records.
func TestRedisALostPartStopsNothing(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for _, lost := range lostParts() {
		for name, calls := range lossCalls(lost) {
			must(t, client.FlushAll(t.Context()).Err())
			w := newWorker(t, client, true)
			must(t, client.Do(t.Context(), lost.do...).Err())
			for range 3 {
				if err := calls(w); err != nil {
					t.Errorf("%s is lost: %s: %v", lost.name, name, err)
				}
			}
			w.exact(lost.name + " is lost: after " + name)
		}
	}
}

// lossCalls are calls that meet lost parts.
func lossCalls(l loss) map[string]func(*worker) error {
	return map[string]func(*worker) error{
		"turns": func(w *worker) error {
			if err := w.turn(ports.TurnRequest{Want: 100}); err != nil {
				return err
			}
			_, err := w.store.Heads(w.t.Context(), []core.Shard{w.shard})
			return err
		},
		"a push":         func(w *worker) error { return w.push(one(l.id, 50), one(l.id, 51)) },
		"a push of many": func(w *worker) error { return w.push(untagged(l.id, 30)...) },
		"a bury":         func(w *worker) error { return w.bury("plain", l.id, "whole") },
		"a delete": func(w *worker) error {
			_, err := w.store.Delete(w.t.Context(), w.step("plain", l.id, "large"))
			return err
		},
		"an expedite": func(w *worker) error {
			_, err := w.store.Expedite(w.t.Context(), w.step("plain", l.id, "large"))
			return err
		},
		"a revive": func(w *worker) error {
			_, err := w.store.Revive(w.t.Context(), w.dead("buried", l.id, "dead"))
			return err
		},
		"a revive of a part": func(w *worker) error {
			_, err := w.store.Revive(w.t.Context(), w.some(l.id, 3, 7))
			return err
		},
		"a purge":            func(w *worker) error { return w.purge(w.dead("buried", l.id)) },
		"a purge of a group": func(w *worker) error { return w.purge(w.group()) },
		"an edit": func(w *worker) error {
			_, err := w.store.Edit(w.t.Context(),
				ports.EditRequest{Shard: w.shard, ID: l.id, Old: []byte("p3"), New: []byte("new")})
			return err
		},
		"looks": func(w *worker) error {
			page := ports.PageRequest{Queue: "orders", Limit: 100, Payloads: 30}
			_, err := w.store.Jobs(w.t.Context(), ports.JobsRequest{PageRequest: page})
			if err == nil {
				_, err = w.store.Morgue(w.t.Context(), ports.MorgueRequest{PageRequest: page})
			}
			if err == nil {
				_, err = w.store.Find(w.t.Context(), ports.FindRequest{Queue: "orders", ID: l.id, Payloads: 1000})
			}
			return err
		},
	}
}

// exact checks that lists and counts agree after a Recount.
func (w *worker) exact(after string) {
	w.t.Helper()
	reply, err := kit.Recounted(w.t.Context(), w.store, w.shard)
	must(w.t, err)
	page := ports.PageRequest{Queue: "orders", Limit: 1000}
	jobs, err := w.store.Jobs(w.t.Context(), ports.JobsRequest{PageRequest: page})
	must(w.t, err)
	letters, err := w.store.Morgue(w.t.Context(), ports.MorgueRequest{PageRequest: page})
	must(w.t, err)
	groups, err := w.store.Groups(w.t.Context(), ports.GroupsRequest{Queue: "orders"})
	must(w.t, err)
	c := reply.After
	if n := int64(len(jobs.Jobs)); c.Fresh+c.Retrying != n || c.Dead != int64(len(letters.DeadLetters)) ||
		groups.Dead != c.Dead {
		w.t.Errorf("%s %d jobs and %d dead letters are counted, %d of them in groups; %d and %d are listed",
			after, c.Fresh+c.Retrying, c.Dead, groups.Dead, n, len(letters.DeadLetters))
	}
}

// The rest of a record with a lost part is shown with the reason. It can be discarded. Until
// then Find reports that it is damaged.
func TestRedisALostPartIsShown(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for _, lost := range lostParts() {
		if !lost.aside {
			continue
		}
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, true)
		must(t, client.Do(t.Context(), lost.do...).Err())
		found, err := w.store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: lost.id, Payloads: 1000})
		if err != nil || len(found.Damaged) != 1 || found.Queued != nil || found.DeadLetter != nil {
			t.Errorf("%s is lost: Find returned %+v, %v; want one damaged record", lost.name, found, err)
		}
		pending, err := w.store.Pending(t.Context(), ports.PendingRequest{Queue: "orders", IDs: []string{lost.id}})
		must(t, err)
		want := found.Pending()
		want.Now = pending.IDs[0].Now
		if pending.IDs[0] != want {
			t.Errorf("%s is lost: pending is %+v, want %+v as Find has it", lost.name, pending.IDs[0], want)
		}
		must(t, w.turn(ports.TurnRequest{Want: 100}))
		must(t, w.purge(ports.DeadLetterStep{Shard: w.shard, Before: core.MaxInstant}))
		records := w.aside(lost.id)
		if len(records) == 0 || !strings.Contains(records[0].Reason, "payloads") &&
			!strings.Contains(records[0].Reason, "record") ||
			len(found.Damaged) == 1 && records[0].Place != found.Damaged[0] {
			t.Errorf("%s is lost: set aside is %+v", lost.name, records)
			continue
		}
		n, err := w.store.Discard(t.Context(), ports.DiscardRequest{Shard: w.shard, Keys: []string{records[0].Key}})
		if left := client.Keys(t.Context(), key("q*")).Val(); n != 1 || err != nil || len(left) != 0 {
			t.Errorf("%s is lost: Discard returned %d, %v, and left %q", lost.name, n, err, left)
		}
		if found, err = w.store.Find(t.Context(), ports.FindRequest{
			Queue: "orders", ID: lost.id, Payloads: 1000,
		}); err != nil || len(found.Damaged) != 0 {
			t.Errorf("%s is lost: Find of what was discarded returned %+v, %v", lost.name, found, err)
		}
	}
}

// A job that no list has runs, at the time of its retry if it has failed, and a dead letter that no
// list has can be revived.
func TestRedisWhatNoListHasIsListedAnew(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, true)
	retry := client.ZScore(t.Context(), key("r"), "failed").Val()
	must(t, client.ZRem(t.Context(), key("r"), "plain", "failed").Err())
	must(t, w.push(one("plain", 2), one("failed", 2)))
	if at := client.ZScore(t.Context(), key("r"), "failed").Val(); at != retry || retry == 0 {
		t.Errorf("the failed job is listed at %v, want %v", at, retry)
	}
	must(t, w.turn(ports.TurnRequest{Want: 100}))
	if n := len(w.claims["plain"].Payloads); n != 2 {
		t.Errorf("%d payloads of the job are claimed, want 2", n)
	}
	must(t, client.ZRem(t.Context(), key("xt"), "buried").Err())
	reply, err := w.store.Revive(t.Context(), w.dead("buried"))
	if must(t, err); reply.Handled != 1 {
		t.Errorf("the step was %+v, want one dead letter", reply)
	}
	w.aside()
}

// A purge of all ends even if the records of the morgue are lost, and so does a purge of a group.
// Lost records are shown.
func TestRedisAPurgeOfLostLettersEnds(t *testing.T) {
	t.Parallel()
	const letters = 700
	for name, group := range map[string]string{"all": "", "a group": core.BuriedByHand} {
		client := testservers.OwnRedis(t).(*goredis.Client)
		var log strings.Builder
		w := newWorker(t, client, false)
		w.store = redis.New(client, redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		var ids []string
		var entries []core.Entry
		for i := range letters {
			ids = append(ids, fmt.Sprintf("dead-%06d", i))
			entries = append(entries, one(ids[i], 1))
		}
		must(t, w.push(entries...))
		for some := range slices.Chunk(ids, ports.MaxStep) {
			must(t, w.bury(some...))
		}
		must(t, client.Del(t.Context(), key("x")).Err())
		steps := 0
		for more := true; more && steps < 100; steps++ {
			reply, err := w.store.Purge(t.Context(),
				ports.DeadLetterStep{Shard: w.shard, Before: core.MaxInstant, Group: group})
			must(t, err)
			more = reply.More
		}
		stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
		must(t, err)
		groups, err := w.store.Groups(t.Context(), ports.GroupsRequest{Queue: "orders"})
		must(t, err)
		left := client.Exists(t.Context(), key("xt"), key("xi"), key("g:"+core.BuriedByHand)).Val()
		if steps == 100 || stats[0].Quarantined != letters || stats[0].Dead != 0 || groups.Dead != 0 || left != 0 {
			t.Errorf("of %s: after %d steps %d are set aside, %d dead, %d in groups, and %d lists are left",
				name, steps, stats[0].Quarantined, stats[0].Dead, groups.Dead, left)
		}
		if n := strings.Count(log.String(), "was set aside"); n != letters {
			t.Errorf("of %s: the log has %d of %d", name, n, letters)
		}
	}
}

// A shard that has lost the records of all its jobs works with the jobs that are pushed then.
func TestRedisAShardWithoutRecordsWorksOn(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, true)
	must(t, client.Del(t.Context(), key("j")).Err())
	must(t, w.turn(ports.TurnRequest{Want: 100}))
	must(t, w.push(one("new", 1)))
	clear(w.claims)
	must(t, w.turn(ports.TurnRequest{Want: 100}))
	if len(w.claims) != 1 {
		t.Errorf("claimed are %v, want the new job", w.claims)
	}
	w.exact("after that")
}
