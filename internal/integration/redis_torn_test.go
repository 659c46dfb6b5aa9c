package integration_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// tornCall is a call that meets a shard of which a key is missing.
type tornCall struct {
	key  string // is missing
	name string
	call func(*worker) error
}

// A shard of which a master has only some keys, as after a failover amid the migration of its
// slot, is said to be torn, by each call that meets what is missing, and nothing is written.
func TestRedisTornShardIsNamed(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for _, tt := range append(tornRecords(), tornSets()...) {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, tt.key != "j" && tt.key != "r")
		must(t, client.Del(t.Context(), "skein:{orders/0}:"+tt.key).Err())
		before := allContents(t, client)
		if err := tt.call(w); !errors.Is(err, redis.ErrTorn) || storekit.HasKnownOutcome(err) {
			t.Errorf("%s without the key %s gave %v, want %v", tt.name, tt.key, err, redis.ErrTorn)
		}
		if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
			t.Errorf("%s without the key %s has changed what is stored (-before +after):\n%s", tt.name, tt.key, diff)
		}
	}
}

// What a shard has of an id whose record is missing is not written over, and not added to.
func TestRedisTornRecordKeepsPayloads(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, true)
	must(t, client.HDel(t.Context(), "skein:{orders/0}:x", "gone").Err())
	must(t, client.HDel(t.Context(), "skein:{orders/0}:j", "whole").Err())
	must(t, w.push(untagged("gone", 10)...))
	before := allContents(t, client)
	for name, call := range map[string]func() error{
		"a bury":               func() error { return w.bury("gone") },
		"a push of many":       func() error { return w.push(untagged("whole", 10)...) },
		"a push beside others": func() error { return w.push(append(untagged("whole", 10), one("another", 1))...) },
	} {
		if err := call(); !errors.Is(err, redis.ErrTorn) {
			t.Errorf("%s gave %v, want %v", name, err, redis.ErrTorn)
		}
		if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
			t.Errorf("%s has changed what is stored (-before +after):\n%s", name, diff)
		}
	}
}

// tornRecords are calls on a shard without the jobs, or without their times.
func tornRecords() []tornCall {
	return []tornCall{
		{"j", "a turn", func(w *worker) error { return w.turn(ports.TurnRequest{Want: 10}) }},
		{"j", "a list", func(w *worker) error {
			_, err := w.store.Jobs(w.t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders", Limit: 10}})
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
			tornCall{key, "a find", func(w *worker) error { _, err := w.store.Find(w.t.Context(), "orders", key[2:]); return err }},
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
				_, err := w.store.Morgue(w.t.Context(), ports.MorgueRequest{PageRequest: ports.PageRequest{Queue: "orders", Limit: 100}})
				return err
			}},
			tornCall{key, "a find", func(w *worker) error { _, err := w.store.Find(w.t.Context(), "orders", key[2:]); return err }},
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
				_, err := w.store.Edit(w.t.Context(), ports.EditRequest{Shard: w.shard, ID: key[2:], Old: []byte("p3"), New: []byte("new")})
				return err
			}},
		)
	}
	return all
}
