package redis_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// load is a queue that a benchmark fills and empties: ids of 12 bytes, each with
// one payload of 100 bytes of its own.
type load struct {
	b      *testing.B
	store  *redis.Store
	queue  ports.DeclareRequest
	pushed int
	// tagged is n if each nth job has a tag, and 0 if no job has one.
	tagged int
}

func newLoad(b *testing.B, client goredis.UniversalClient, shards int) *load {
	b.Helper()
	l := &load{
		b:     b,
		store: redis.New(client, redis.Options{Prefix: testservers.Prefix(b, client)}),
		queue: ports.DeclareRequest{Queue: "orders", Shards: shards},
	}
	return l
}

func (l *load) declare(index bool) {
	l.b.Helper()
	l.queue.IndexIDs = index
	if _, err := l.store.Declare(l.b.Context(), l.queue); err != nil {
		l.b.Fatal(err)
	}
}

// push pushes n new jobs in one call.
func (l *load) push(n int) {
	entries := make([]core.Entry, n)
	for i := range entries {
		id := fmt.Sprintf("order-%06d", l.pushed%1_000_000)
		score := float64(time.Now().UnixMicro()) / 1e6
		data := fmt.Sprintf("%088d", l.pushed) + id
		entries[i] = core.Entry{ID: id, Payload: core.Payload{Data: []byte(data), Score: score}}
		l.pushed++
		if l.tagged > 0 && l.pushed%l.tagged == 0 {
			entries[i].Tags = "vip"
		}
	}
	_, err := l.store.Push(l.b.Context(),
		ports.PushRequest{Queue: l.queue.Queue, Shards: l.queue.Shards, Generation: 1, Entries: entries})
	if err != nil {
		l.b.Fatal(err)
	}
}

func BenchmarkRedisPush(b *testing.B) {
	for _, size := range []int{1, 100, 500} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			l := newLoad(b, testservers.Redis(b), 1)
			l.declare(false)
			for b.Loop() {
				l.push(size)
			}
			kit.PerJob(b, size)
		})
	}
}

// acquire acquires the queue's one shard for turns that claim the given number of jobs.
func (l *load) acquire(want int) ports.TurnRequest {
	l.b.Helper()
	shard := core.Shard{Queue: l.queue.Queue}
	a, err := l.store.Acquire(l.b.Context(),
		ports.AcquireRequest{Shard: shard, Shards: 1, Generation: 1, Owner: "bench", Attempt: 1, TTL: time.Hour})
	if err != nil {
		l.b.Fatal(err)
	}
	return ports.TurnRequest{
		Lease: ports.Lease{Shard: shard, Owner: "bench", Token: a.Token}, TTL: time.Hour, Want: want, Node: "bench",
	}
}

// turn makes the next turn, and returns how many jobs it has claimed. The one after it settles
// them all alike.
func (l *load) turn(r *ports.TurnRequest, as core.Settlement) (claimed int) {
	r.Number++
	reply, err := l.store.Turn(l.b.Context(), *r)
	if err != nil {
		l.b.Fatal(err)
	}
	r.Settlements = r.Settlements[:0]
	for _, c := range reply.Claims {
		as.ID, as.Receipt = c.ID, c.Receipt
		r.Settlements = append(r.Settlements, as)
	}
	return len(reply.Claims)
}

// BenchmarkRedisTurn settles as many jobs as it claims. Of some turns of 256 jobs one or two have a
// tag, or all. Some record all jobs, some of these with a result, and remove as many records.
func BenchmarkRedisTurn(b *testing.B) {
	for _, of := range []struct {
		name         string
		size, tagged int
		past         *core.Past
	}{
		{"1", 1, 0, nil}, {"64", 64, 0, nil}, {"256", 256, 0, nil},
		{"256-few-tagged", 256, 200, nil}, {"256-all-tagged", 256, 1, nil},
		{"1-recorded", 1, 0, &core.Past{Node: "bench"}}, {"64-recorded", 64, 0, &core.Past{Node: "bench"}},
		{"64-with-results", 64, 0, &core.Past{Node: "bench", Result: make([]byte, 100)}},
	} {
		size := of.size
		b.Run(of.name, func(b *testing.B) {
			l := newLoad(b, testservers.Redis(b), 1)
			l.tagged = of.tagged
			l.declare(false)
			turn := l.acquire(size)
			if of.past != nil {
				turn.Keep = core.KeepPast{Age: time.Hour, Count: 20_000}
			}
			for b.Loop() {
				if turn.Number%(5000/int64(size)+1) == 0 {
					b.StopTimer()
					for range 10 {
						l.push(600)
					}
					b.StartTimer()
				}
				if n := l.turn(&turn, core.Settlement{Processed: true, Past: of.past}); n != size {
					b.Fatalf("%d claims", n)
				}
			}
			kit.PerJob(b, size)
		})
	}
}

// BenchmarkRedisMemory measures the memory of a queued job in a Redis of its own.
func BenchmarkRedisMemory(b *testing.B) {
	const jobs = 1_000_000
	for _, kind := range []struct {
		name     string
		index    bool
		payloads int
	}{{"one payload", false, 1}, {"indexed by id", true, 1}, {"two payloads", false, 2}} {
		b.Run(kind.name, func(b *testing.B) {
			client := testservers.OwnRedis(b)
			for b.Loop() {
				l := newLoad(b, client, 5)
				l.declare(kind.index)
				before := usedMemory(b, client)
				for l.pushed < jobs*kind.payloads {
					l.push(2500)
				}
				b.ReportMetric(float64(usedMemory(b, client)-before)/jobs, "B/job")
			}
		})
	}
}

// BenchmarkRedisMemoryOfRecords measures the memory of the record of a done job, without a result and
// with one of 100 bytes.
func BenchmarkRedisMemoryOfRecords(b *testing.B) {
	const jobs = 1_000_000
	for name, result := range map[string][]byte{"no result": nil, "a result of 100 bytes": make([]byte, 100)} {
		b.Run(name, func(b *testing.B) {
			client := testservers.OwnRedis(b)
			for b.Loop() {
				l := newLoad(b, client, 1)
				l.declare(false)
				turn := l.acquire(250)
				turn.Keep = core.KeepPast{Age: time.Hour}
				before := usedMemory(b, client)
				for range jobs / 2500 {
					l.push(2500)
					for range 10 {
						l.turn(&turn, core.Settlement{Processed: true, Past: &core.Past{Node: "web-1", Result: result}})
					}
				}
				l.turn(&turn, core.Settlement{})
				b.ReportMetric(float64(usedMemory(b, client)-before)/jobs, "B/record")
			}
		})
	}
}

func usedMemory(b *testing.B, client goredis.UniversalClient) int64 {
	b.Helper()
	info, err := client.Info(context.Background(), "memory").Result()
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := strings.Cut(info, "\r\nused_memory:")
	text, _, _ := strings.Cut(rest, "\r\n")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// BenchmarkRedisMemoryOfFailures measures the additional memory of a queued job once it is a
// retry, and the memory of a dead one, in all and by key, with an error of 64 bytes.
func BenchmarkRedisMemoryOfFailures(b *testing.B) {
	const jobs = 100_000
	failed := core.PutBack{Delay: time.Hour, RetryCount: 3, Failures: core.Failures{{Text: strings.Repeat("e", 64)}}}
	for _, kind := range []struct {
		name string
		rest core.Disposition
	}{{"queued", core.Discard}, {"a retry", core.Requeue}, {"dead", core.Bury}} {
		b.Run(kind.name, func(b *testing.B) {
			client := testservers.OwnRedis(b)
			for b.Loop() {
				l := newLoad(b, client, 1)
				l.declare(false)
				before := usedMemory(b, client)
				for l.pushed < jobs {
					l.push(2500)
				}
				if kind.rest != core.Discard {
					l.settleAll(jobs, core.Settlement{Rest: kind.rest, PutBack: failed, Failed: true})
				}
				b.ReportMetric(float64(usedMemory(b, client)-before)/jobs, "B/job")
				logKeys(b, client, jobs)
			}
		})
	}
}

// settleAll claims n jobs and settles each alike.
func (l *load) settleAll(n int, as core.Settlement) {
	l.b.Helper()
	turn := l.acquire(core.MaxTurnJobs)
	for settled := 0; settled < n; settled += len(turn.Settlements) {
		l.turn(&turn, as)
	}
}

// logKeys logs how many bytes each key takes per job, the largest first. It leaves out keys of less
// than a byte per job.
func logKeys(b *testing.B, client goredis.UniversalClient, jobs int64) {
	b.Helper()
	type sized struct {
		key   string
		bytes int64
	}
	var all []sized
	keys, err := client.Keys(b.Context(), "*").Result()
	if err != nil {
		b.Fatal(err)
	}
	for _, key := range keys {
		n, err := client.MemoryUsage(b.Context(), key, 0).Result()
		if err != nil {
			b.Fatal(err)
		}
		all = append(all, sized{key[strings.LastIndexByte(key, '}')+1:], n})
	}
	slices.SortFunc(all, func(x, y sized) int { return int(y.bytes - x.bytes) })
	for _, s := range all {
		if s.bytes >= jobs {
			b.Logf("%-6s %4d B/job", s.key, s.bytes/jobs)
		}
	}
}
