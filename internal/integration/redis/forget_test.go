package redis_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A queue that is forgotten leaves no key behind.
func TestRedisForgetsAll(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, true)
	must(t, releasing(w))
	_, err := w.store.Delete(t.Context(), w.step("a", "cut", "failed", "large", "plain", "whole"))
	must(t, err)
	must(t, w.purge(w.dead("dead", "buried", "rest", "gone")))
	must(t, w.acquire("test", 2))
	r := ports.TurnRequest{}
	for _, id := range []string{"a", "b", "cut", "dead"} {
		r.Settlements = append(r.Settlements, w.settle(id, core.Outcome{Kind: core.Done})...)
	}
	must(t, w.turn(r))
	must(t, releasing(w))
	if err := w.store.Forget(t.Context(), "orders"); !errors.Is(err, ports.ErrNotEmpty) {
		t.Errorf("with schedules, Forget returned %v, want %v", err, ports.ErrNotEmpty)
	}
	must(t, w.changeSchedules(removed("a", "due"), removed("idle", "never")))
	must(t, w.store.Forget(t.Context(), "orders"))
	if left := allContents(t, client); len(left) > 0 {
		t.Errorf("it left %v", left)
	}
}

// Whatever comes between the steps of a Forget, no job is in a queue that is not listed, and
// nothing of such a queue is left. A queue that is declared after Forget has stored its nonce is
// complete.
func TestRedisForgetRaces(t *testing.T) {
	t.Parallel()
	pushes := func(w *worker) error { return w.push(one("new", 1)) }
	declares := func(w *worker) error { return w.declare("orders") }
	for name, between := range map[string]func(*worker) error{
		"nothing":                  unprepared,
		"a push":                   pushes,
		"an acquire":               func(w *worker) error { return w.acquire("test", 1) },
		"a declaration":            declares,
		"a declaration and a push": inTurn(declares, pushes),
		"a pause":                  pausing,
		"another Forget":           func(w *worker) error { return w.store.Forget(w.t.Context(), "orders") },
		"a declaration, a push and another's nonce": inTurn(declares, pushes, func(w *worker) error {
			return w.client.HSet(w.t.Context(), "skein:queues", "orders", "1 0 1 1 0 another").Err()
		}),
		"another, and a declaration": inTurn(func(w *worker) error { return w.store.Forget(w.t.Context(), "orders") },
			declares, pushes),
	} {
		for step, before := range []string{"the check", "the nonce", "the shard", "the record"} {
			t.Run(name+" before "+before, func(t *testing.T) {
				w := forgetWith(t, step, between)
				switch queues, err := w.store.Queues(t.Context()); {
				case strings.Contains(name, "declaration") && step > 1:
					w.listed()
				case (name == "nothing" || name == "a pause") && (len(queues) > 0 || err != nil):
					t.Errorf("%v are listed: %v", queues, err)
				}
			})
		}
	}
}

// forgetWith forgets a queue, calls between before one of the steps, and checks what is left.
func forgetWith(t *testing.T, step int, between func(*worker) error) *worker {
	t.Helper()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := &worker{
		t:      t,
		client: client,
		store:  openFrozen(client),
		shard:  core.Shard{Queue: "orders"},
		claims: map[string]core.Claim{},
	}
	must(t, w.declare("orders"))
	own := goredis.NewClient(client.Options())
	defer own.Close()
	late := openFrozen(own)
	must(t, late.Ping(t.Context()))
	var came error
	own.AddHook(&beforeStep{step: step, do: func() { came = between(w) }})
	err := late.Forget(t.Context(), "orders")
	if came != nil && !errors.Is(came, ports.ErrUnknownQueue) {
		t.Errorf("what came in between failed: %v", came)
	}

	pushed, err2 := client.HLen(t.Context(), "skein:{orders/0}:j").Result()
	must(t, err2)
	if queues, err := w.store.Queues(t.Context()); err != nil || len(queues) == 0 {
		if left := allContents(t, client); len(left) > 0 || err != nil {
			t.Errorf("the queue is not listed, but there are %v: %v", left, err)
		}
		return w
	}
	if err == nil {
		w.listed()
	} else if pushed == 0 && !errors.Is(err, ports.ErrLeaseHeld) {
		t.Errorf("Forget of an empty queue gave %v", err)
	}
	return w
}

// listed checks that the queue is there and takes pushes.
func (w *worker) listed() {
	w.t.Helper()
	queues, err := w.store.Queues(w.t.Context())
	if err != nil || len(queues) != 1 {
		w.t.Errorf("%d queues are listed: %v", len(queues), err)
	}
	if err := w.push(one("after", 1)); err != nil {
		w.t.Errorf("the queue is listed, but a push gave %v", err)
	}
}

// beforeStep calls do before the script with the number step, from 0 on.
type beforeStep struct {
	step int
	do   func()
	seen int
}

func (b *beforeStep) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (b *beforeStep) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() == "evalsha" {
			if b.seen == b.step {
				b.do()
			}
			b.seen++
		}
		return next(ctx, cmd)
	}
}

func (b *beforeStep) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// beforeScript calls do before one command or pipeline of a client: the one that counts left down
// to 0.
type beforeScript struct {
	left atomic.Int64
	do   func()
}

func (h *beforeScript) count() {
	if h.left.Add(-1) == 0 {
		h.do()
	}
}

func (h *beforeScript) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h *beforeScript) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		h.count()
		return next(ctx, cmd)
	}
}

func (h *beforeScript) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, all []goredis.Cmder) error {
		h.count()
		return next(ctx, all)
	}
}

// A Pause whose second half comes after a Forget and the next Declare changes nothing of the queue
// that is new then.
func TestRedisAPauseOfAForgottenQueueIsLate(t *testing.T) {
	t.Parallel()
	for name, shards := range map[string]int{"other shards": 3, "as many shards": 2} {
		t.Run(name, func(t *testing.T) {
			own := testservers.OwnRedis(t).(*goredis.Client)
			late := goredis.NewClient(own.Options())
			defer late.Close()
			ctx, store := t.Context(), redis.New(own, redis.Options{})
			_, err := store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 2})
			must(t, err)
			slow := redis.New(late, redis.Options{})
			must(t, slow.Pause(ctx, "orders"))
			must(t, slow.Resume(ctx, "orders"))
			anew := &beforeScript{do: func() {
				must(t, store.Forget(ctx, "orders"))
				_, err := store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: shards})
				must(t, err)
			}}
			late.AddHook(anew)
			anew.left.Store(2) // the first writes the queue's record, the second those of its shards
			_ = slow.Pause(ctx, "orders")
			for _, shard := range core.Shards("orders", shards) {
				a, err := store.Acquire(ctx,
					ports.AcquireRequest{
						Shard:      shard,
						Shards:     shards,
						Generation: 1,
						Owner:      "o",
						Attempt:    1,
						TTL:        time.Minute,
					})
				if err != nil || a.Paused {
					t.Errorf("%v: paused %v, %v; want it as it was declared", shard, a.Paused, err)
				}
			}
		})
	}
}

// A Pause reaches all shards except one that can't be reached.
func TestRedisAPauseReachesTheOtherShards(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	cutting := goredis.NewClient(client.Options())
	defer cutting.Close()
	cuts := new(cutShards)
	cutting.AddHook(cuts)
	s := severable{redis.New(cutting, redis.Options{}), cuts, "skein:"}
	_, err := s.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 256})
	must(t, err)
	mend := s.Sever(core.Shard{Queue: "orders", Index: 3})
	if err := s.Pause(t.Context(), "orders"); err == nil {
		t.Error("a Pause that did not reach a shard returned nil")
	}
	mend()
	for _, shard := range core.Shards("orders", 256) {
		record := client.Get(t.Context(), "skein:{"+shard.String()+"}:m").Val()
		if paused := strings.HasPrefix(record, "0 1 "); paused != (shard.Index != 3) {
			t.Errorf("%v has %q", shard, record)
		}
	}
}
