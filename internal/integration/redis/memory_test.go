package redis_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// BenchmarkRedisMemoryOfFailures measures the additional memory of a queued job once it is a
// retry, and the memory of a dead one, in all and by key, with an error of 64 bytes.
func BenchmarkRedisMemoryOfFailures(b *testing.B) {
	const jobs = 100_000
	failed := core.PutBack{Delay: time.Hour, RetryCount: 3, Error: strings.Repeat("e", 64)}
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
