package redis_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A pause, a resume and a declaration change the queue's record and then each shard. A pause or
// resume between the two halves of another call is the last: all shards end in its state.
func TestRedisPauseRacesResume(t *testing.T) {
	t.Parallel()
	declaring := func(w *worker) error { return w.declare("orders") }
	for name, tt := range map[string]struct {
		before, first, second func(*worker) error
		paused                bool
	}{
		"a resume between a pause":   {resuming, pausing, resuming, false},
		"a pause between a resume":   {pausing, resuming, pausing, true},
		"a pause between a declare":  {unprepared, declaring, pausing, true},
		"a resume between a declare": {pausing, declaring, resuming, false},
	} {
		t.Run(name, func(t *testing.T) {
			client, first, second, paused := testservers.OwnRedis(t).(*goredis.Client), tt.first, tt.second, tt.paused
			w := newWorker(t, client, false)
			must(t, tt.before(w))
			late := goredis.NewClient(client.Options())
			defer late.Close()
			late.AddHook(&beforeShards{do: func() { must(t, second(w)) }})
			must(t, first(&worker{t: t, store: openFrozen(late)}))

			queues, err := w.store.Queues(t.Context())
			must(t, err)
			if queues[0].Paused != paused {
				t.Errorf("the queue's record says paused %t, want %t", queues[0].Paused, paused)
			}
			must(t, w.turn(ports.TurnRequest{Want: 1}))
			if _, claimed := w.claims["b"]; claimed == paused {
				t.Errorf("its shard gives a job: %t, but the queue's record says paused %t", claimed, paused)
			}
		})
	}
}

// A change of the merge rule that overtakes another one between its two halves is the last: its
// rule holds in the queue and in all shards.
func TestRedisSetMergeRacesSetMerge(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 2})
	must(t, err)
	set := func(s *redis.Store, last int) {
		must(t, s.SetMerge(t.Context(),
			ports.SetMergeRequest{Queue: "orders", Merge: core.MergeRule{Stays: core.Highest, Keep: last}}))
	}
	late := goredis.NewClient(client.Options())
	defer late.Close()
	late.AddHook(&beforeShards{do: func() { set(store, 7) }})
	set(redis.New(late, redis.Options{}), 3)

	queues, err := store.Queues(t.Context())
	must(t, err)
	if rule := queues[0].Merge; rule.Keep != 7 {
		t.Errorf("the queue has the rule %v, want the later one", rule)
	}
	queue := client.HGet(t.Context(), "skein:queues", "orders").Val()
	for _, shard := range core.Shards("orders", 2) {
		if record := client.Get(t.Context(), fmt.Sprintf("skein:{%v}:m", shard)).Val(); queue != record+" +" {
			t.Errorf("the queue's record is %q and that of %v %q", queue, shard, record)
		}
	}
}

// beforeShards calls do once, before the first command that names a shard's key.
type beforeShards struct {
	once sync.Once
	do   func()
	on   string // the beginning of a key of theirs; shard 0's by default
	// scripts is set if only scripts count, and no other commands.
	scripts bool
}

func (b *beforeShards) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (b *beforeShards) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		b.see(cmd)
		return next(ctx, cmd)
	}
}

func (b *beforeShards) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		for _, cmd := range cmds {
			b.see(cmd)
		}
		return next(ctx, cmds)
	}
}

func (b *beforeShards) see(cmd goredis.Cmder) {
	if b.scripts && !strings.HasPrefix(cmd.Name(), "eval") {
		return
	}
	for _, arg := range cmd.Args() {
		if text, ok := arg.(string); ok && strings.HasPrefix(text, cmp.Or(b.on, "skein:{orders/0}:")) {
			b.once.Do(b.do)
		}
	}
}

// A shard whose record is stored while a call checks why it had none is not taken for lost.
func TestRedisAShardDeclaredMeanwhileIsNotLost(t *testing.T) {
	t.Parallel()
	own := testservers.OwnRedis(t).(*goredis.Client)
	store := redis.New(own, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	record := own.GetDel(t.Context(), key("m")).Val()
	hooked := goredis.NewClient(own.Options())
	defer hooked.Close()
	hooked.AddHook(&beforeQueueRecord{do: func() { must(t, own.Set(t.Context(), key("m"), record, 0).Err()) }})
	push := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a"}}}
	late := redis.New(hooked, redis.Options{})
	if _, err := late.Push(t.Context(), push); !errors.Is(err, ports.ErrUnknownQueue) ||
		errors.Is(err, redis.ErrLostRecord) {
		t.Errorf("a push that a Declare has overtaken gave %v, want %v", err, ports.ErrUnknownQueue)
	}
	_, err = late.Push(t.Context(), push)
	must(t, err)
}

// beforeQueueRecord calls do once, before the first command that reads the record of orders. If err
// is set, each such command fails with it instead.
type beforeQueueRecord struct {
	once sync.Once
	do   func()
	err  error
}

func (b *beforeQueueRecord) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (b *beforeQueueRecord) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if args := cmd.Args(); len(args) == 4 && args[0] == "hmget" && args[2] == "orders" {
			if b.err != nil {
				cmd.SetErr(b.err)
				return b.err
			}
			b.once.Do(b.do)
		}
		return next(ctx, cmd)
	}
}

func (b *beforeQueueRecord) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// Declare makes the queue's record and then each shard's. If Forget removes all of them in
// between, the queue is declared all the same: nothing is pushed to shards that are in no list and
// would obstruct the next Declare, with another shard count.
func TestRedisDeclareRacesForget(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	store := openFrozen(client)
	declare := ports.DeclareRequest{Queue: "orders", Shards: 1}
	_, err := store.Declare(t.Context(), declare)
	must(t, err)
	late := goredis.NewClient(client.Options())
	defer late.Close()
	late.AddHook(&beforeShards{scripts: true, do: func() { must(t, store.Forget(t.Context(), "orders")) }})

	_, err = openFrozen(late).Declare(t.Context(), declare)
	must(t, err)
	queues, err := store.Queues(t.Context())
	must(t, err)
	if len(queues) != 1 || queues[0].Shards != 1 {
		t.Errorf("after Declare the queues are %+v, want orders with 1 shard", queues)
	}
	_, err = store.Push(t.Context(), ports.PushRequest{
		Queue:      "orders",
		Shards:     1,
		Generation: 1,
		Entries:    []core.Entry{{ID: "a", Payload: core.Payload{Data: []byte("x")}}},
	})
	must(t, err)
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "a", Payloads: 1000})
	must(t, err)
	if found.Queued == nil {
		t.Errorf("found %+v, want the job queued", found)
	}
}
