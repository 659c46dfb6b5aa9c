package redis_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// joinedScripts is a hook of a client that counts the scripts with pushes of several callers.
type joinedScripts struct {
	// refuse has them refused, as by a server of a Cluster.
	refuse bool
	// severalShards and oneShard count the scripts with pushes of several callers.
	severalShards, oneShard atomic.Int64
}

// errCrossSlot is the reply of a server of a Cluster.
type errCrossSlot string

func (e errCrossSlot) Error() string { return string(e) }
func (errCrossSlot) RedisError()     {}

// take reports whether a command is refused.
func (j *joinedScripts) take(cmd goredis.Cmder) bool {
	args := cmd.Args()
	if len(args) < 4 || !strings.HasPrefix(cmd.Name(), "eval") {
		return false
	}

	keys, _ := args[2].(int)
	records := make(map[any]bool)
	for i := range keys {
		if key, _ := args[3+i].(string); strings.HasSuffix(key, "}:m") {
			records[key] = true
		}
	}
	switch {
	case len(records) > 1:
		j.severalShards.Add(1)
		return j.refuse
	case len(records) == 1 && keys == 4 && len(args) > 3+keys+5:
		j.oneShard.Add(1)
	}
	return false
}

func (j *joinedScripts) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (j *joinedScripts) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if j.take(cmd) {
			cmd.SetErr(errCrossSlot("CROSSSLOT Keys in request don't hash to the same slot"))
			return cmd.Err()
		}
		return next(ctx, cmd)
	}
}

func (j *joinedScripts) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		var sent []goredis.Cmder
		for _, cmd := range cmds {
			if j.take(cmd) {
				cmd.SetErr(errCrossSlot("CROSSSLOT Keys in request don't hash to the same slot"))
			} else {
				sent = append(sent, cmd)
			}
		}
		return next(ctx, sent)
	}
}

// pushRound is the pushes of callers that push at the same time.
type pushRound struct {
	store   *redis.Store
	pushing sync.WaitGroup
	// start is closed to have all callers push.
	start chan struct{}
}

// pushed is the result of one push.
type pushed struct {
	reply ports.PushReply
	err   error
}

func (r *pushRound) push(ctx context.Context, queue string, generation int64, entries ...core.Entry) *pushed {
	p := new(pushed)
	r.pushing.Go(func() {
		<-r.start
		p.reply, p.err = r.store.Push(ctx, ports.PushRequest{
			Queue: queue, Shards: 5, Generation: generation, Entries: entries,
		})
	})
	return p
}

// pushNew has a number of callers push one new job each to orders, in round n.
func (r *pushRound) pushNew(ctx context.Context, n, callers int) (all []*pushed) {
	for i := range callers {
		all = append(all, r.push(ctx, "orders", 1, entry(fmt.Sprint(n, "-", i), "paid")))
	}
	return all
}

// ordersSeenBy returns a store with the queue orders, and its client, whose scripts the hook counts.
func ordersSeenBy(t *testing.T, counted *joinedScripts) (*redis.Store, goredis.UniversalClient) {
	t.Helper()
	client := testservers.OwnRedis(t)
	client.AddHook(counted)
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 5})
	must(t, err)
	return store, client
}

func entry(id, payload string) core.Entry {
	return core.Entry{ID: id, Payload: core.Payload{Data: []byte(payload)}}
}

// shardKey returns the key of an id's shard that has the given suffix.
func shardKey(queue, id, suffix string) string {
	return fmt.Sprintf("skein:{%s/%d}:%s", queue, core.ShardOf(id, 5), suffix)
}

// rounds has callers push at the same time, in rounds, until enough reports that pushes have gone
// together.
func rounds(t *testing.T, store *redis.Store, enough func() bool, round func(r *pushRound, n int) (check func())) {
	t.Helper()
	for n := 0; !enough(); n++ {
		if n == 2000 {
			t.Fatal("in 2,000 rounds no pushes went together")
		}
		r := &pushRound{store: store, start: make(chan struct{})}
		check := round(r, n)
		close(r.start)
		r.pushing.Wait()
		if check(); t.Failed() {
			return
		}
	}
}

// Each of several pushes that go together has the reply that it would have alone, also if others are
// unusual or fail.
func TestRedisPushesThatGoTogetherHaveTheirOwnReplies(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	counted := new(joinedScripts)
	client.AddHook(counted)
	store := redis.New(client, redis.Options{})
	for _, queue := range []string{"orders", "bills", "torn"} {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 5, IndexIDs: queue == "bills"})
		must(t, err)
	}
	for shard := range 5 { // the jobs of this queue are no hash
		must(t, client.Set(t.Context(), fmt.Sprintf("skein:{torn/%d}:j", shard), "text", 0).Err())
	}

	jobs := 0
	rounds(t, store, func() bool { return counted.severalShards.Load() >= 20 }, func(r *pushRound, n int) func() {
		ctx, name := t.Context(), func(what string, i int) string { return fmt.Sprint(what, "-", n, "-", i) }
		var usual, same, others []*pushed
		for i := range 8 {
			usual = append(usual, r.push(ctx, "orders", 1, entry(name("usual", i), "paid")))
			usual = append(usual, r.push(ctx, "bills", 1, entry(name("usual", i), "paid")))
		}
		for i := range 4 {
			same = append(same, r.push(ctx, "orders", 1, entry(name("same", 0), name("payload", i%2))))
		}

		later := entry(name("later", 0), "paid")
		later.When = core.In(time.Hour)
		others = append(others,
			r.push(ctx, "orders", 1, later),
			r.push(ctx, "orders", 1, entry(name("pair", 0), "paid"), entry(name("pair", 0), "sent")))
		claimed := name("claimed", 0)
		must(t, client.HSet(ctx, shardKey("orders", claimed, "c"), claimed, "a claim").Err())
		others = append(others, r.push(ctx, "orders", 1, entry(claimed, "paid")))
		unknown := r.push(ctx, "unknown", 1, entry("order", "paid"))
		mismatch := r.push(ctx, "orders", 7, entry("order", "paid"))
		torn := r.push(ctx, "torn", 1, entry("order", "paid"))
		jobs += len(usual)/2 + 4

		return func() {
			for i := range 8 {
				id := name("usual", i)
				if err := client.ZScore(ctx, shardKey("bills", id, "i"), id).Err(); err != nil {
					t.Errorf("%s is not in the index of ids: %v", id, err)
				}
			}
			for _, p := range usual {
				if p.err != nil || p.reply.New != 1 || p.reply.Merged+p.reply.Duplicate != 0 || p.reply.Now == 0 {
					t.Errorf("a usual push has %+v (%v), want one new job", p.reply, p.err)
				}
			}
			var met ports.PushReply
			for _, p := range same {
				met.Add(p.reply)
			}
			if met.New != 1 || met.Merged != 1 || met.Duplicate != 2 {
				t.Errorf("pushes for one id have met %+v, want one new, one merged and two equal payloads", met)
			}
			for i, p := range others {
				if p.err != nil || p.reply.New != 1 || p.reply.Merged != i%2 {
					t.Errorf("push %d, which is not usual, has %+v (%v)", i, p.reply, p.err)
				}
			}
			if err := client.ZScore(ctx, shardKey("orders", claimed, "w"), claimed).Err(); err != nil {
				t.Errorf("the job that was pushed for a claimed id is not parked: %v", err)
			}
			if !errors.Is(unknown.err, ports.ErrUnknownQueue) || !errors.Is(mismatch.err, ports.ErrShardCountMismatch) {
				t.Errorf("the pushes with wrong names have %v and %v", unknown.err, mismatch.err)
			}
			if torn.err == nil || !strings.Contains(torn.err.Error(), "WRONGTYPE") {
				t.Errorf("the push to a torn shard has %v, want the server's error", torn.err)
			}
		}
	})

	stats, err := store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	must(t, err)
	if got := int(stats[0].Fresh); got != jobs {
		t.Errorf("%d jobs are stored, want %d", got, jobs)
	}
}

// Pushes that go together wake the shards that were empty.
func TestRedisPushesThatGoTogetherWakeTheirShards(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	counted := new(joinedScripts)
	client.AddHook(counted)
	store := redis.New(client, redis.Options{})

	rounds(t, store, func() bool { return counted.severalShards.Load() >= 10 }, func(r *pushRound, n int) func() {
		queue, waiting := fmt.Sprint("orders-", n), make(map[core.Shard]bool)
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 5})
		must(t, err)
		for i := range 5 {
			waiting[core.Shard{Queue: queue, Index: i}] = true
		}
		ctx, cancel := context.WithTimeout(t.Context(), testservers.Patience)
		wakeups, err := store.Wakeups(ctx, slices.Collect(maps.Keys(waiting)))
		must(t, err)
		for i := range 30 {
			r.push(t.Context(), queue, 1, entry(fmt.Sprint(i), "paid"))
		}
		return func() {
			defer cancel()
			for len(waiting) > 0 {
				shard, open := <-wakeups
				if !open {
					t.Fatalf("no wake-up came for %v", waiting)
				}
				delete(waiting, shard)
			}
		}
	})
}

// Once a server has refused a script with keys of several slots, each script has those of one.
func TestRedisPushesGoTogetherByShardAtAServerOfACluster(t *testing.T) {
	t.Parallel()
	counted := &joinedScripts{refuse: true}
	store, _ := ordersSeenBy(t, counted)

	refused := int64(0)
	rounds(t, store, func() bool { return counted.oneShard.Load() >= 20 }, func(r *pushRound, n int) func() {
		all := r.pushNew(t.Context(), n, 30)
		return func() {
			for _, p := range all {
				if p.err != nil || p.reply.New != 1 {
					t.Errorf("a push has %+v (%v), want one new job", p.reply, p.err)
				}
			}
			was := refused
			if refused = counted.severalShards.Load(); was > 0 && refused > was {
				t.Errorf("%d more scripts with keys of several shards were sent after a refusal", refused-was)
			}
		}
	})
	if refused == 0 {
		t.Error("no script had keys of several shards before the refusal")
	}
}

// A full server refuses each of several pushes that go together by ErrFull.
func TestRedisPushesThatGoTogetherAreRefusedByAFullServer(t *testing.T) {
	t.Parallel()
	counted := new(joinedScripts)
	store, client := ordersSeenBy(t, counted)
	must(t, client.ConfigSet(t.Context(), "maxmemory", "1").Err())

	rounds(t, store, func() bool { return counted.severalShards.Load() >= 5 }, func(r *pushRound, n int) func() {
		all := r.pushNew(t.Context(), n, 20)
		return func() {
			for _, p := range all {
				if !errors.Is(p.err, ports.ErrFull) {
					t.Errorf("a push to a full server has %v, want %v", p.err, ports.ErrFull)
				}
			}
		}
	})
}
