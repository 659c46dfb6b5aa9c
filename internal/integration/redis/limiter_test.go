package redis_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// limited is a store with a queue whose limiters are tested, and a clock that the test moves.
type limited struct {
	*worker
	now time.Time
}

func newLimited(t *testing.T) *limited {
	client := testservers.OwnRedis(t)
	l := &limited{worker: &worker{t: t, client: client, shard: core.Shard{Queue: "orders"}}, now: frozenNow}
	l.store = redis.New(client, redis.Options{Clock: func() time.Time { return l.now }})
	l.must(l.declare("orders"))
	return l
}

// grants takes up to nine grants of a limiter whose rate is one a second, and nine at once.
func (l *limited) grants(key string) ports.Grant {
	l.t.Helper()
	reply, err := l.store.Take(l.t.Context(), ports.TakeRequest{Queue: "orders", Takes: []ports.Take{
		{Key: key, Rate: core.Rate{Count: 1, Per: time.Second, Burst: 8}, Want: 9},
	}})
	l.must(err)
	return reply.Grants[0]
}

const (
	limiters    = "skein:{orders}:limiters"
	limiterEnds = "skein:{orders}:ends"
)

// A limiter that can't be read grants nothing until its end, so the rate is not exceeded, and at
// most for a day. Others are not disturbed.
func TestRedisADamagedLimiterIsStopped(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	for _, damage := range []string{"", "?", "1 2 3 4", "-1 2 3 4 5", "1 2 3 4 5 6", "nan inf 0 0 0"} {
		l.must(l.client.Del(t.Context(), limiters, limiterEnds).Err())
		l.grants("a")
		l.must(l.client.HSet(t.Context(), limiters, "a", damage).Err())

		end := core.InstantOf(l.now).Add(9 * time.Second)
		if got := l.grants("a"); got.Granted != 0 || got.Stopped != end {
			t.Errorf("a limiter %q grants %+v, want none before %v", damage, got, end)
		}
		if got := l.grants("b"); got.Granted != 9 {
			t.Errorf("beside a limiter %q another one grants %+v, want 9", damage, got)
		}
		if _, err := l.store.Limits(t.Context(), ports.LimitsRequest{Queue: "orders"}); err != nil {
			t.Errorf("with a limiter %q the list fails: %v", damage, err)
		}

		l.now = l.now.Add(9 * time.Second)
		if got := l.grants("a"); got.Granted != 1 {
			t.Errorf("after its end a limiter %q grants %+v, want 1", damage, got)
		}
	}

	l.must(l.client.HSet(t.Context(), limiters, "a", "?").Err())
	l.must(l.client.Do(t.Context(), "ZADD", limiterEnds, "+inf", "a").Err())
	if got, end := l.grants("a"), core.InstantOf(l.now).Add(core.MaxStop); got.Stopped != end {
		t.Errorf("a limiter whose end can't be read either is stopped until %v, want %v", got.Stopped, end)
	}
}

// Limiters are removed once they are gone, a bounded number by each call. Their keys have no TTL,
// since a policy such as volatile-lru would evict them.
func TestRedisRemovesLimitersThatAreGone(t *testing.T) {
	t.Parallel()
	l := newLimited(t)
	for n := range 250 {
		l.grants(fmt.Sprint(n))
	}
	for _, key := range []string{limiters, limiterEnds} {
		if ttl := l.client.TTL(t.Context(), key).Val(); ttl != -1 {
			t.Errorf("%s has the TTL %v, want none", key, ttl)
		}
	}

	l.now = l.now.Add(9*time.Second + core.LimiterKept)
	for _, want := range []int64{150, 49, 1} {
		l.grants("250")
		fields, ends := l.client.HLen(t.Context(), limiters).Val(), l.client.ZCard(t.Context(), limiterEnds).Val()
		if fields != want || ends != want {
			t.Errorf("%d limiters with %d ends are left, want %d", fields, ends, want)
		}
	}
}
