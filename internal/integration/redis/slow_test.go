package redis_test

import (
	"flag"
	"fmt"
	"slices"
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
	slowJobs  = flag.Int("slow.jobs", 5000, "how many jobs TestRedisSlowest loads a shard with")
	slowLimit = flag.Duration("slow.limit", 0, "the processor time that TestRedisSlowest allows a script; 0 is any")
)

// TestRedisSlowest prints how long each script takes when it does the most that
// it may, with payloads of 100 bytes, on a loaded shard. SLOWLOG has the
// server's time from a script's start to its end, so the shortest of the repeats
// is the processor's.
func TestRedisSlowest(t *testing.T) {
	tier.Long(t, "measures")
	s := newSlow(t)
	for len(s.claims) < core.MaxTurnJobs {
		s.turn(nil, core.MaxTurnJobs)
	}
	s.timePushes()
	s.timeTurns()
	s.timeSteps()
	s.timePages()
	slices.SortFunc(s.rows, func(a, b slowCall) int { return int(b.times[0] - a.times[0]) })
	for _, row := range s.rows {
		t.Logf("%-50s %8v to %8v", row.name, row.times[0], row.times[len(row.times)-1])
		if *slowLimit > 0 && row.times[0] > *slowLimit {
			t.Errorf("%s takes a script over %v", row.name, *slowLimit)
		}
	}
}

// slow is a shard under load, and the holder of its lease.
type slow struct {
	t      *testing.T
	client goredis.UniversalClient
	store  *redis.Store
	lease  ports.Lease
	last   int64
	claims []core.Claim
	pushed int
	// ids are those of the next step.
	ids  []string
	rows []slowCall
}

// slowCall is a call, and how long its slowest script took in each repeat, the shortest time first.
type slowCall struct {
	name  string
	times []time.Duration
}

func newSlow(t *testing.T) *slow {
	client := testservers.OwnRedis(t, "--slowlog-log-slower-than", "0", "--slowlog-max-len", "1000")
	s := &slow{t: t, client: client, store: redis.New(client, redis.Options{})}
	s.lease = ports.Lease{Shard: core.Shard{Queue: "orders"}, Owner: "test"}
	ctx := t.Context()
	_, err := s.store.Declare(ctx, ports.DeclareRequest{Queue: "orders", Shards: 1, IndexIDs: true})
	s.must(err)
	s.acquire(1)
	for s.pushed < *slowJobs {
		s.push(s.fresh(ports.MaxPush, core.When{}))
	}
	return s
}

func (s *slow) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// slowRepeats is how often each call is made: often if there is a limit, so that the shortest time
// is the script's own.
func slowRepeats() int {
	if *slowLimit == 0 {
		return 2
	}
	return 15
}

// time makes a call several times. Its preparation is not timed.
func (s *slow) time(name string, prepare, do func()) {
	s.t.Helper()
	row := slowCall{name: name}
	for range slowRepeats() {
		prepare()
		s.must(s.client.Do(s.t.Context(), "SLOWLOG", "RESET").Err())
		do()
		log, err := s.client.SlowLogGet(s.t.Context(), -1).Result()
		s.must(err)
		slowest := time.Duration(-1)
		for _, entry := range log {
			if strings.HasPrefix(strings.ToLower(entry.Args[0]), "eval") {
				slowest = max(slowest, entry.Duration)
			}
		}
		if slowest < 0 {
			s.t.Fatalf("%s ran no script", name)
		}
		row.times = append(row.times, slowest)
	}
	slices.Sort(row.times)
	s.rows = append(s.rows, row)
}

func nothing() {}

// fresh are entries with ids of 12 bytes that nobody has pushed.
func (s *slow) fresh(n int, when core.When) []core.Entry {
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = s.entry(fmt.Sprintf("order-%06d", s.pushed), when)
	}
	return entries
}

// entry is a payload of 100 bytes that nobody has pushed.
func (s *slow) entry(id string, when core.When) core.Entry {
	s.pushed++
	data := fmt.Appendf(nil, "%0100d", s.pushed)
	return core.Entry{ID: id, When: when, Payload: core.Payload{Data: data, Score: float64(time.Now().UnixMicro()) / 1e6}}
}

func (s *slow) push(entries []core.Entry) {
	s.t.Helper()
	for some := range slices.Chunk(entries, ports.MaxPush) {
		_, err := s.store.Push(s.t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: some})
		s.must(err)
	}
}

func (s *slow) acquire(attempt int64) {
	s.t.Helper()
	reply, err := s.store.Acquire(s.t.Context(), ports.AcquireRequest{
		Shard: s.lease.Shard, Shards: 1, Generation: 1, Owner: s.lease.Owner, Attempt: attempt, TTL: time.Hour})
	s.must(err)
	s.lease.Token, s.last = reply.Token, 0
}

// turn ends all claims in one way and claims as many as wanted.
func (s *slow) turn(outcome *core.Outcome, want int) {
	s.t.Helper()
	r := ports.TurnRequest{Lease: s.lease, Number: s.last + 1, TTL: time.Hour, Want: want, Node: "node"}
	if outcome != nil {
		policy := core.RetryPolicy{MaxRetries: 25, MaxRecoveries: 3}
		for i := range s.claims {
			r.Settlements = append(r.Settlements, policy.Settlement(&s.claims[i], outcome, 0))
		}
		s.claims = nil
	}
	reply, err := s.store.Turn(s.t.Context(), r)
	s.must(err)
	s.last, s.claims = reply.Last, append(s.claims, reply.Claims...)
}
