package redis_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// wakeCase is a call and how many wake-ups it sends. The port allows any number; the Redis store
// promises no needless ones to callers that only push.
type wakeCase struct {
	name    string
	prepare func(*worker) error
	do      func(*worker) error
	sends   int
}

func unprepared(*worker) error { return nil }

func pushing(entries ...core.Entry) func(*worker) error {
	return func(w *worker) error { return w.push(entries...) }
}

func pushingBy(kind core.RuleKind, entries ...core.Entry) func(*worker) error {
	return func(w *worker) error {
		_, err := w.store.Push(w.t.Context(), ports.PushRequest{
			Queue: "orders", Shards: 1, Generation: 1, Rule: core.PushRule{Kind: kind}, Entries: entries})
		return err
	}
}

func releasing(w *worker) error { return w.store.Release(w.t.Context(), w.lease) }

func pausing(w *worker) error { return w.store.Pause(w.t.Context(), "orders") }

func resuming(w *worker) error { return w.store.Resume(w.t.Context(), "orders") }

func setMerge(w *worker) error {
	return w.store.SetMerge(w.t.Context(),
		ports.SetMergeRequest{Queue: "orders", Merge: core.MergeRule{Stays: core.Highest}})
}

func cancelling(ids ...string) func(*worker) error {
	return func(w *worker) error { return w.cancel(ids...) }
}

func expediting(ids ...string) func(*worker) error {
	return func(w *worker) error {
		_, err := w.store.Expedite(w.t.Context(), w.step(ids...))
		return err
	}
}

func reviving(ids ...string) func(*worker) error {
	return func(w *worker) error {
		_, err := w.store.Revive(w.t.Context(), w.dead(ids...))
		return err
	}
}

// waitingForB puts a back as a job that runs alone, so that it waits for b to end
// and c waits behind it.
func waitingForB(w *worker) error {
	back := core.Settlement{ID: "a", Receipt: w.claims["a"].Receipt, Rest: core.Requeue,
		PutBack: core.PutBack{SameTime: true, RetryCount: core.FreshRetryCount, Recoveries: 2}}
	if err := w.turn(ports.TurnRequest{Want: 1}); err != nil {
		return err
	}
	if err := w.turn(ports.TurnRequest{Settlements: []core.Settlement{back}}); err != nil {
		return err
	}
	return w.push(one("c", 1))
}

func inTurn(all ...func(*worker) error) func(*worker) error {
	return func(w *worker) error {
		for _, do := range all {
			if err := do(w); err != nil {
				return err
			}
		}
		return nil
	}
}

// at is an entry that is due so long after now.
func at(id string, d time.Duration) core.Entry {
	e := one(id, 1)
	e.When = core.At(core.InstantOf(frozenNow.Add(d)))
	return e
}

// wakeCases are of a shard where b is due now and a is claimed.
func wakeCases() []wakeCase {
	burying := func(w *worker) error { return w.bury("b") }
	return []wakeCase{
		{"one in front of the head", unprepared, pushing(one("aa", 1)), 1},
		{"some in front of the head", unprepared, pushing(one("aa", 1), one("c", 1)), 1},
		{"sooner than the head", unprepared, pushing(at("c", -time.Hour)), 1},
		{"one behind the head", unprepared, pushing(one("c", 1)), 0},
		{"some behind the head", unprepared, pushing(one("c", 1), one("d", 1)), 0},
		{"later than the head", unprepared, pushing(at("c", time.Hour), at("d", 0)), 0},
		{"onto a queued job", unprepared, pushing(one("b", 2)), 0},
		{"onto a claimed job", unprepared, pushing(one("a", 2)), 0},
		{"sooner onto a claimed job", unprepared, pushing(at("a", -time.Hour)), 0},
		{"some, one onto a claimed job", unprepared, pushing(one("a", 2), one("c", 1)), 0},
		{"that makes the head sooner", unprepared, pushingBy(core.Earliest, at("b", -time.Hour)), 1},
		{"that makes another sooner", pushing(at("c", time.Hour)), pushingBy(core.Earliest, at("c", time.Minute)), 0},
		{"that makes a waiting job sooner", pushing(at("a", time.Hour)), pushingBy(core.Earliest, at("a", -time.Hour)), 0},
		{"that leaves the head its time", unprepared, pushingBy(core.Earliest, at("b", time.Hour)), 0},
		{"one while paused", pausing, pushing(one("aa", 1)), 0},
		{"some while paused", pausing, pushing(one("aa", 1), one("c", 1)), 0},
		{"sooner while paused", pausing, pushing(at("c", -time.Hour)), 0},
		{"expedite", pushing(at("c", time.Hour)), expediting("c"), 1},
		{"expedite what is due", unprepared, expediting("b"), 0},
		{"expedite a waiting job", pushing(at("a", time.Hour)), expediting("a"), 0},
		{"expedite while paused", inTurn(pushing(at("c", time.Hour)), pausing), expediting("c"), 0},
		{"revive", burying, reviving("b"), 1},
		{"revive what is not there", burying, reviving("c"), 0},
		{"revive while paused", inTurn(burying, pausing), reviving("b"), 0},
		{"revive onto a claimed job", inTurn(pushing(one("a", 2)), func(w *worker) error { return w.bury("a") }), reviving("a"), 0},
		{"delete what keeps others waiting", waitingForB, func(w *worker) error {
			_, err := w.store.Delete(w.t.Context(), w.step("a"))
			return err
		}, 1},
		{"bury what keeps others waiting", waitingForB, func(w *worker) error { return w.bury("a") }, 1},
		{"delete what is not there", unprepared, func(w *worker) error {
			_, err := w.store.Delete(w.t.Context(), w.step("never"))
			return err
		}, 0},
		{"cancel", unprepared, cancelling("a"), 1},
		{"cancel twice", cancelling("a"), cancelling("a"), 0},
		{"cancel what is not claimed", unprepared, cancelling("b"), 0},
		{"pause", unprepared, pausing, 0},
		{"resume", pausing, resuming, 1},
		{"resume without jobs", inTurn(pausing, func(w *worker) error { return w.bury("b") }), resuming, 0},
		{"release", unprepared, releasing, 1},
		{"release a lease that is lost", releasing, func(w *worker) error {
			if err := releasing(w); !errors.Is(err, ports.ErrLeaseLost) {
				return fmt.Errorf("got %w, want %w", err, ports.ErrLeaseLost)
			}
			return nil
		}, 0},
		{"declare again", unprepared, func(w *worker) error { return w.declare("orders") }, 0},
	}
}

// A call sends as many wake-ups as it must and no more. What arrives on a channel
// comes in the order in which it was sent, so what stands before a message of the
// test's own was sent by the call.
func TestRedisWakesOnlyForEarlierHeads(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	const channel, end = "skein:{orders/0}:wake", "end"
	for _, tt := range wakeCases() {
		t.Run(tt.name, func(t *testing.T) {
			must(t, client.FlushAll(t.Context()).Err())
			w := newWorker(t, client, false)
			must(t, tt.prepare(w))
			channels := client.SSubscribe(t.Context(), channel)
			defer channels.Close()
			if _, err := channels.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
			must(t, tt.do(w))
			must(t, client.SPublish(t.Context(), channel, end).Err())
			sent := 0
			for {
				message, err := channels.ReceiveMessage(t.Context())
				must(t, err)
				if message.Payload == end {
					break
				}
				sent++
			}
			if sent != tt.sends {
				t.Errorf("it sent %d wake-ups, want %d", sent, tt.sends)
			}
		})
	}
}

// Wake-ups of a queue whose record can't be read, now or at all, arrive: the shards' own records
// are enough. Those of a queue or a shard that does not exist are refused.
func TestRedisWakeupsNeedNoRecordThatCanBeRead(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	record := client.HGet(t.Context(), "skein:queues", "orders").Val()
	cut := goredis.NewClient(client.Options())
	defer cut.Close()
	cuts := &cutShards{}
	cut.AddHook(cuts)
	store := redis.New(cut, redis.Options{})
	must(t, store.Ping(t.Context()))
	wakes := func(what string) {
		t.Helper()
		woken, err := store.Wakeups(t.Context(), []core.Shard{w.shard})
		if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		must(t, client.SPublish(t.Context(), "skein:{orders/0}:wake", "").Err())
		select {
		case <-woken:
		case <-time.After(testservers.Patience):
			t.Errorf("%s: no wake-up", what)
		}
	}
	wakes("the record is as it was stored")
	must(t, client.HSet(t.Context(), "skein:queues", "orders", "garbage").Err())
	wakes("the record can't be read")
	must(t, client.HSet(t.Context(), "skein:queues", "orders", record).Err())
	cuts.tags.Store("skein:queues", true)
	wakes("the server with the list can't be reached")
	cuts.tags.Clear()
	if _, err := store.Wakeups(t.Context(), []core.Shard{
		w.shard, {Queue: "never"},
	}); !errors.Is(err, ports.ErrUnknownQueue) {
		t.Errorf("wake-ups of a queue that is not there: %v, want %v", err, ports.ErrUnknownQueue)
	}
	for _, index := range []int{-2, 1} { // -1 are the permits
		if _, err := store.Wakeups(t.Context(), []core.Shard{
			{Queue: "orders", Index: index},
		}); !errors.Is(err, ports.ErrInvalidRequest) {
			t.Errorf("wake-ups of shard %d of one: %v", index, err)
		}
	}
}
