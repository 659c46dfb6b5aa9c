package redis_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// tornCall is a call that meets a shard with a missing key.
type tornCall struct {
	key  string // the missing key
	name string
	call func(*worker) error
}

// A shard may have some keys on one master and the rest on another, as after a failover in the
// middle of its slot's migration. It is reported as torn, by each call that meets a missing key,
// and nothing is written.
func TestRedisTornShardIsNamed(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedisCluster(t).(*goredis.ClusterClient)
	h := &halfMoved{t: t}
	h.findServers(client, key("m"))
	for _, tt := range append(tornRecords(), tornSets()...) {
		h.from.put(t, nil)
		h.to.put(t, nil)
		w := newWorker(t, client, tt.key != "j" && tt.key != "r")
		h.tear(key(tt.key))
		before, there := h.from.read(t, h.slot), h.to.keys(t, h.slot)
		if err := tt.call(w); !errors.Is(err, redis.ErrTorn) || storekit.HasKnownOutcome(err) {
			t.Errorf("%s without the key %s gave %v, want %v", tt.name, tt.key, err, redis.ErrTorn)
		}
		if diff := cmp.Diff(before, h.from.read(t, h.slot)); diff != "" {
			t.Errorf("%s without the key %s has changed what is stored (-before +after):\n%s", tt.name, tt.key, diff)
		}
		if diff := cmp.Diff(there, h.to.keys(t, h.slot)); diff != "" || len(there) != 1 {
			t.Errorf("%s without the key %s has changed what the other master has (-before +after):\n%s",
				tt.name, tt.key, diff)
		}
	}
}

// A shard all of whose keys are on another master than its slot is not made anew by a recount,
// which would leave two of it.
func TestRedisAShardElsewhereIsNotMadeAnew(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedisCluster(t).(*goredis.ClusterClient)
	h := &halfMoved{t: t}
	h.findServers(client, key("m"))
	w := newWorker(t, client, false)
	for _, key := range h.from.keys(t, h.slot) {
		h.tear(key)
	}
	there := h.to.keys(t, h.slot)
	for range 2 { // at last without the queue's record
		if _, err := kit.Recounted(t.Context(), w.store, w.shard); err == nil {
			t.Error("a recount has found nothing wrong")
		}
		if here := h.from.keys(t, h.slot); len(here) > 0 || len(there) == 0 {
			t.Errorf("the slot's owner has %q, and another %q", here, there)
		}
		must(t, client.HDel(t.Context(), "skein:queues", "orders").Err())
	}
}

// If a shard's record is lost and its other keys are on the slot's owner, a recount makes the
// record anew.
func TestRedisAShardWithoutItsRecordIsMendedByItsOwner(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedisCluster(t).(*goredis.ClusterClient)
	w := newWorker(t, client, false)
	must(t, client.Del(t.Context(), key("m")).Err())
	_, err := kit.Recounted(t.Context(), w.store, w.shard)
	must(t, err)
	must(t, w.push(one("new", 1)))
}

// tear leaves a key on the server that its slot was going to. No server knows of it any more.
func (h *halfMoved) tear(key string) {
	h.t.Helper()
	dump, err := h.from.do(h.t.Context(), "dump", key)
	must(h.t, err)
	h.place(h.to, map[string]string{key: dump.(string)})
	must(h.t, h.from.client.Del(h.t.Context(), key).Err())
	h.flag("STABLE")
}

// The stored payloads of an id whose record is missing are neither overwritten nor added to. They
// are set aside, all of them.
func TestRedisALostRecordKeepsPayloads(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for name, call := range map[string]func(*worker) error{
		"a bury":         func(w *worker) error { return w.bury("gone", "whole") },
		"a push of many": func(w *worker) error { return w.push(untagged("whole", 10)...) },
		"a push beside others": func(w *worker) error {
			return w.push(append(untagged("whole", 10), one("another", 1))...)
		},
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, true)
		id, place := "whole", "j"
		if name == "a bury" {
			id, place = "gone", "x"
			must(t, w.push(untagged("gone", 10)...))
		}
		must(t, client.HDel(t.Context(), key(place), id).Err())
		must(t, call(w))
		records := w.aside(id)
		if len(records) != 1 {
			continue
		}
		if n := client.ZCard(t.Context(), key("q:"+records[0].Key)).Val(); n != 20 {
			t.Errorf("%s: %d payloads are kept, want 20", name, n)
		}
	}
}

// tornRecords are calls on a shard without the jobs, or without their times.
func tornRecords() []tornCall {
	return []tornCall{
		{"j", "a turn", func(w *worker) error { return w.turn(ports.TurnRequest{Want: 10}) }},
		{"j", "a list", func(w *worker) error {
			_, err := w.store.Jobs(w.t.Context(),
				ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders", Limit: 10}})
			return err
		}},
		{"r", "a push", func(w *worker) error { return w.push(one("b", 5), one("z", 1)) }},
		{"r", "a step", func(w *worker) error {
			_, err := w.store.Expedite(w.t.Context(), w.step("b"))
			return err
		}},
	}
}

// tornSets are calls on a shard that lacks the payloads of a job or of a dead letter.
func tornSets() []tornCall {
	var all []tornCall
	for key, payloads := range map[string]int{"p:large": 0, "p:whole": 10} {
		all = append(all,
			tornCall{key, "a page of jobs", func(w *worker) error {
				page := ports.PageRequest{Queue: "orders", Limit: 100, Payloads: payloads}
				_, err := w.store.Jobs(w.t.Context(), ports.JobsRequest{PageRequest: page})
				return err
			}},
			tornCall{key, "a turn that claims", func(w *worker) error { return w.turn(ports.TurnRequest{Want: 100}) }},
			tornCall{key, "a find", func(w *worker) error {
				_, err := w.store.Find(w.t.Context(), ports.FindRequest{Queue: "orders", ID: key[2:], Payloads: 1000})
				return err
			}},
			tornCall{key, "what is pending", func(w *worker) error {
				_, err := w.store.Pending(w.t.Context(), ports.PendingRequest{Queue: "orders", IDs: []string{key[2:]}})
				return err
			}},
			tornCall{key, "a push", func(w *worker) error { return w.push(one(key[2:], 5), one(key[2:], 50)) }},
			tornCall{key, "a bury", func(w *worker) error { return w.bury("plain", key[2:]) }},
			tornCall{key, "a delete", func(w *worker) error {
				_, err := w.store.Delete(w.t.Context(), w.step("plain", key[2:]))
				return err
			}},
		)
	}
	for _, key := range []string{"d:dead", "d:gone"} {
		all = append(all,
			tornCall{key, "a page of dead letters", func(w *worker) error {
				_, err := w.store.Morgue(w.t.Context(),
					ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: "orders", Limit: 100}})
				return err
			}},
			tornCall{key, "a find", func(w *worker) error {
				_, err := w.store.Find(w.t.Context(), ports.FindRequest{Queue: "orders", ID: key[2:], Payloads: 1000})
				return err
			}},
			tornCall{key, "a revive", func(w *worker) error {
				_, err := w.store.Revive(w.t.Context(), w.dead("buried", key[2:]))
				return err
			}},
			tornCall{key, "a revive of a part", func(w *worker) error {
				_, err := w.store.Revive(w.t.Context(), w.some(key[2:], 3, 7))
				return err
			}},
			tornCall{key, "a purge", func(w *worker) error { return w.purge(w.dead("buried", key[2:])) }},
			tornCall{key, "an edit", func(w *worker) error {
				_, err := w.store.Edit(w.t.Context(),
					ports.EditRequest{Shard: w.shard, ID: key[2:], Old: []byte("p3"), New: []byte("new")})
				return err
			}},
		)
	}
	return all
}
