package redis_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

var (
	boundsJobs = flag.Int("bounds.jobs", 64,
		"how many jobs of 1,000 payloads TestRedisCallsAreBounded makes, at most 250")
	boundsHot = flag.Int("bounds.hot", 100_000, "how many payloads of one id TestRedisCallsAreBounded makes")
)

// TestRedisCallsAreBounded compares the server's processor time for a call with a bound, in a
// shard full of large jobs. The bounds are generous: each call took several times as much when it
// moved or read all at once.
func TestRedisCallsAreBounded(t *testing.T) {
	tier.Long(t, "measures")
	t.Run("many jobs of 1,000 payloads", func(t *testing.T) { newBounds(t).manyJobs(*boundsJobs) })
	t.Run("one job of many payloads", func(t *testing.T) { newBounds(t).oneJob(*boundsHot) })
	t.Run("payloads of 256 KiB", func(t *testing.T) { newBounds(t).largePayloads() })
	t.Run("a hot job", func(t *testing.T) {
		few, many := newBounds(t).hotTurn(10_000), newBounds(t).hotTurn(*boundsHot)
		t.Logf("a turn of 1,000 payloads out of 10,000 takes %v, out of %d %v", few, *boundsHot, many)
		if many > 4*few {
			t.Errorf("a turn takes %v with %d payloads waiting, and %v with 10,000", many, *boundsHot, few)
		}
	})
}

// manyJobs claims, recovers and settles jobs of 1,000 payloads, and has an operator handle them.
func (b *bounds) manyJobs(n int) {
	ids := b.fill("job", n, 1000, 100)
	var claims []core.Claim
	for len(claims) < n {
		claims = append(claims, b.turn(ports.TurnRequest{Want: 1}).Claims...)
	}
	var handedOver []core.Claim
	b.within("acquire", 60*time.Millisecond, func() { handedOver = b.acquire("test", 2).Claims })
	for len(handedOver) < n {
		var more []core.Claim
		b.within("turn that hands over", 60*time.Millisecond, func() { more = b.turn(ports.TurnRequest{}).Orphans })
		if len(more) != 1 {
			b.t.Fatalf("a turn hands %d jobs of 1,000 payloads over, want one", len(more))
		}
		handedOver = append(handedOver, more...)
	}
	b.settleAll("turn that puts back", handedOver, core.Outcome{Kind: core.Untouched})
	b.steps("bury", b.store.Bury, ids)
	b.fill("job", n, 1, 200)
	b.revives("revive onto jobs", ids)
	b.steps("bury", b.store.Bury, ids[:n/2])
	b.fill("job", n, 500, 300)
	b.steps("bury onto dead letters", b.store.Bury, ids)
	b.revives("revive", ids)
	b.steps("delete", b.store.Delete, ids)
}

// oneJob has an operator handle a job of many payloads.
func (b *bounds) oneJob(n int) {
	ids := b.fill("one", 1, n, 100)
	b.steps("bury", b.store.Bury, ids)
	b.within("edit", 30*time.Millisecond, func() {
		data := append([]byte("1"), bytes.Repeat([]byte("x"), 99)...)
		reply, err := b.store.Edit(b.t.Context(),
			ports.EditRequest{Shard: b.shard, ID: ids[0], Old: data, New: []byte("new")})
		must(b.t, err)
		if reply.Handled != 1 {
			b.t.Error("a payload was not found")
		}
	})
	b.revives("revive", ids)
	b.fill("one", 1, 1, 200)
	b.steps("delete", b.store.Delete, ids)
}

// largePayloads claims from a job of 64 MiB, and puts back.
func (b *bounds) largePayloads() {
	b.fill("large", 1, 256, 256<<10)
	var claims []core.Claim
	b.within("turn that claims 4 MiB", 150*time.Millisecond, func() {
		claims = b.turn(ports.TurnRequest{Want: 1}).Claims
	})
	if len(claims) != 1 || len(claims[0].Payloads) != 16 {
		b.t.Fatal("a turn did not claim 16 payloads of a job")
	}
	b.settleAll("turn that puts 4 MiB back", claims, core.Outcome{Kind: core.Untouched})
	b.fill("single", 64, 1, 256<<10)
	b.within("page without payloads", 150*time.Millisecond, func() {
		_, err := b.store.Jobs(b.t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders"}})
		must(b.t, err)
	})
}

// hotTurn returns the time of a turn that claims 1,000 payloads of a job that has n.
func (b *bounds) hotTurn(n int) time.Duration {
	b.fill("hot", 1, n, 100)
	least := time.Hour
	for range 5 {
		var claims []core.Claim
		took := b.cpu(func() { claims = b.turn(ports.TurnRequest{Want: 1}).Claims })
		b.settleAll("turn that puts back", claims, core.Outcome{Kind: core.Untouched})
		least = min(least, took)
	}
	return least
}

// settleAll settles claims in the same way, by as many turns as it takes.
func (b *bounds) settleAll(name string, claims []core.Claim, o core.Outcome) {
	b.t.Helper()
	var policy core.RetryPolicy
	for len(claims) > 0 {
		var r ports.TurnRequest
		for i := range claims {
			r.Settlements = append(r.Settlements, policy.Settlement(&claims[i], &o, 0))
		}
		var left []core.Claim
		b.within(name, 60*time.Millisecond, func() {
			for _, i := range b.turn(r).Deferred {
				left = append(left, claims[i])
			}
		})
		if len(left) == len(claims) {
			b.t.Fatalf("%s: all %d settlements were deferred", name, len(left))
		}
		claims = left
	}
}

// steps repeats a step on jobs until all are handled.
func (b *bounds) steps(name string, step func(context.Context, ports.JobStep) (ports.StepReply, error), ids []string) {
	b.t.Helper()
	handled := b.repeat(name, len(ids), func(from int) (ports.StepReply, error) {
		return step(b.t.Context(), ports.JobStep{Shard: b.shard, IDs: ids[from:]})
	})
	if handled != len(ids) {
		b.t.Errorf("%s handled %d jobs of %d", name, handled, len(ids))
	}
}

// revives repeats a step on dead letters until all are handled.
func (b *bounds) revives(name string, ids []string) {
	b.t.Helper()
	refs := make([]ports.DeadLetterRef, len(ids))
	for i, id := range ids {
		refs[i].ID = id
	}
	handled := b.repeat(name, len(ids), func(from int) (ports.StepReply, error) {
		return b.store.Revive(b.t.Context(), ports.DeadLetterStep{Shard: b.shard, DeadLetters: refs[from:]})
	})
	if handled != len(ids) {
		b.t.Errorf("%s handled %d dead letters of %d", name, handled, len(ids))
	}
}

func (b *bounds) repeat(name string, n int, step func(from int) (ports.StepReply, error)) (handled int) {
	b.t.Helper()
	for from, calls := 0, 0; from < n; calls++ {
		b.within(name, 60*time.Millisecond, func() {
			reply, err := step(from)
			must(b.t, err)
			handled, from = handled+reply.Handled, from+reply.Reached
		})
		if calls > 10*n+*boundsHot/500 {
			b.t.Fatalf("%s does not end", name)
		}
	}
	return handled
}

// within makes a call, which must not take more of the server's processor time than the limit.
func (b *bounds) within(name string, limit time.Duration, do func()) {
	b.t.Helper()
	took := b.cpu(do)
	if b.slowest[name] = max(b.slowest[name], took); took > limit {
		b.t.Errorf("%s takes %v of the server's processor time, want %v at most", name, took, limit)
	}
}

// bounds is a shard that is full of large jobs, and the holder of its lease.
type bounds struct {
	t      *testing.T
	client goredis.UniversalClient
	store  *redis.Store
	shard  core.Shard
	lease  ports.Lease
	last   int64
	// slowest is the most that a call of each name took.
	slowest map[string]time.Duration
}

func newBounds(t *testing.T) *bounds {
	t.Helper()
	client := testservers.OwnRedis(t)
	b := &bounds{
		t:       t,
		client:  client,
		store:   redis.New(client, redis.Options{}),
		shard:   core.Shard{Queue: "orders"},
		slowest: map[string]time.Duration{},
	}
	t.Cleanup(func() {
		for _, name := range slices.Sorted(maps.Keys(b.slowest)) {
			t.Logf("%-30s at most %v", name, b.slowest[name])
		}
	})
	_, err := b.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	b.acquire("test", 1)
	return b
}

func (b *bounds) acquire(owner string, attempt int64) ports.AcquireReply {
	b.t.Helper()
	reply, err := b.store.Acquire(b.t.Context(), ports.AcquireRequest{
		Shard: b.shard, Shards: 1, Generation: 1, Owner: owner, Attempt: attempt, TTL: time.Hour})
	must(b.t, err)
	b.lease, b.last = ports.Lease{Shard: b.shard, Owner: owner, Token: reply.Token}, 0
	return reply
}

// fill pushes jobs with the given number and size of payloads, and returns their ids.
func (b *bounds) fill(name string, jobs, payloads, size int) []string {
	b.t.Helper()
	var ids []string
	filler := bytes.Repeat([]byte("x"), size)
	var entries []core.Entry
	bytes := 0
	flush := func() {
		if len(entries) == 0 {
			return
		}
		_, err := b.store.Push(b.t.Context(),
			ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
		must(b.t, err)
		entries, bytes = entries[:0], 0
	}
	for i := range jobs {
		id := fmt.Sprintf("%s-%06d", name, i)
		ids = append(ids, id)
		for k := range payloads {
			data := append(strconv.AppendInt(nil, int64(k), 10), filler...)[:max(size, 8)]
			entries = append(entries, core.Entry{ID: id, Payload: core.Payload{Data: data, Score: float64(k)}})
			if bytes += size; len(entries) == 5000 || bytes > 8<<20 {
				flush()
			}
		}
	}
	flush()
	return ids
}

func (b *bounds) turn(r ports.TurnRequest) ports.TurnReply {
	b.t.Helper()
	r.Lease, r.Number, r.TTL, r.Node = b.lease, b.last+1, time.Hour, "node"
	reply, err := b.store.Turn(b.t.Context(), r)
	must(b.t, err)
	b.last = reply.Last
	return reply
}

// cpu returns how much processor time the server takes for a call.
func (b *bounds) cpu(do func()) time.Duration {
	b.t.Helper()
	before := b.used()
	do()
	return b.used() - before
}

// used is the processor time that the server's main thread has taken.
func (b *bounds) used() time.Duration {
	b.t.Helper()
	info, err := b.client.Info(b.t.Context(), "cpu").Result()
	must(b.t, err)
	var sum float64
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if slices.Contains([]string{"used_cpu_user_main_thread", "used_cpu_sys_main_thread"}, name) {
			seconds, err := strconv.ParseFloat(value, 64)
			must(b.t, err)
			sum += seconds
		}
	}
	return time.Duration(sum * float64(time.Second))
}
