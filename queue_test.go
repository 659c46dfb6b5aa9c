package skein_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// TestEachQueueOptionCounts has a case for each option, that fails if the option
// is ignored.
func TestEachQueueOptionCounts(t *testing.T) {
	type options = skein.QueueOptions[string]
	cases := []struct {
		option string
		check  func(t *testing.T, store *memory.Store)
	}{
		{"Shards", func(t *testing.T, store *memory.Store) {
			push(t, store, skein.NewQueue("q", options{Shards: 7}), "a", "x")
			queues, err := store.Queues(t.Context())
			if err != nil || len(queues) != 1 || queues[0].Shards != 7 {
				t.Errorf("Queues = %+v, %v; want one of 7 shards", queues, err)
			}
		}},
		{"BatchSize", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{Shards: 1, BatchSize: 3})
			for i := range 5 {
				push(t, store, q, fmt.Sprint(i), "x")
			}

			var sizes []int
			runDue(t, store, skein.ServerOptions{},
				q.BatchHandler(func(_ context.Context, b *skein.Batch[string]) error {
					sizes = append(sizes, len(b.Jobs()))
					return nil
				}))
			equal(t, "sizes of batches", sizes, []int{3, 2})
		}},
		{"Parallel", func(t *testing.T, store *memory.Store) {
			bounded := skein.NewQueue("bounded", options{Shards: 2, Parallel: 1})
			equal(t, "batches at once of two shards, one of each", mostAtOnce(t, store, bounded), 2)

			free := skein.NewQueue("free", options{Shards: 2})
			equal(t, "batches at once without a bound", mostAtOnce(t, store, free), 8)
		}},
		{"MaxLanes", func(t *testing.T, store *memory.Store) {
			equal(t, "batches at once", mostAtOnce(t, store, skein.NewQueue("q", options{MaxLanes: 3})), 3)
		}},
		{"MaxRunning", func(t *testing.T, store *memory.Store) {
			equal(t, "batches at once", mostAtOnce(t, store, skein.NewQueue("q", options{MaxRunning: 3})), 3)
			equal(t, "batches at once with fewer lanes",
				mostAtOnce(t, store, skein.NewQueue("r", options{MaxRunning: 6, MaxLanes: 2})), 2)
		}},
		{"MaxRunning of RunDue", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{MaxRunning: 1})
			free := skein.NewQueue("free", options{})
			for i := range 20 {
				push(t, store, q, fmt.Sprint(i), "x")
			}

			push(t, store, free, "a", "x")
			other := ports.PermitRequest{
				Queue:   "q",
				Owner:   "other",
				Attempt: 1,
				Limit:   1,
				Hold:    1,
				Want:    1,
				TTL:     time.Hour,
			}
			if _, err := store.Permit(t.Context(), other); err != nil {
				t.Fatal(err)
			}

			ran := func() int {
				jobs, err := skein.NewServer(
					store, skein.ServerOptions{Logger: quiet}, nop(q), nop(free),
				).RunDue(t.Context())
				if err != nil {
					t.Errorf("RunDue: %v", err)
				}
				return jobs
			}

			equal(t, "jobs while another server has the permit", ran(), 1)
			other.Hold, other.Want, other.Attempt = 0, 0, 2
			if _, err := store.Permit(t.Context(), other); err != nil {
				t.Fatal(err)
			}
			equal(t, "jobs with the permit", ran(), 20)

			other.Hold, other.Want, other.Attempt = 1, 1, 3
			if reply, err := store.Permit(t.Context(), other); err != nil || reply.Held != 1 {
				t.Errorf("after RunDue another server gets %+v, %v", reply, err)
			}
		}},
		{"MaxRetries", func(t *testing.T, store *memory.Store) {
			now := func(int) time.Duration { return 0 }
			for name, c := range map[string]struct{ retries, executions int }{
				"none": {skein.NoRetries, 1}, "one": {1, 2}, "default": {0, 26},
			} {
				q := skein.NewQueue(name, options{MaxRetries: c.retries, Backoff: now})
				push(t, store, q, "a", "x")
				calls := 0
				runDue(t, store, skein.ServerOptions{}, q.Handler(func(context.Context, string, []string) error {
					calls++
					return errors.New("boom")
				}))
				equal(t, name, calls, c.executions)
			}
		}},
		{"MaxRecoveries", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{Shards: 1, MaxRecoveries: skein.NoRetries})
			push(t, store, q, "a", "x")
			abandon(t, store, "q")
			runDue(t, store, skein.ServerOptions{}, nop(q))
			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
			if err != nil || found.DeadLetter == nil {
				t.Errorf("Find = %+v, %v; want it in the morgue after its first lost owner", found, err)
			}
		}},
		{"Backoff", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{
				Backoff: func(retry int) time.Duration { return time.Duration(retry+7) * time.Minute },
			})
			push(t, store, q, "a", "x")
			start := time.Now()
			runDue(t, store, skein.ServerOptions{}, failing(q, errors.New("boom")))
			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
			if err != nil || found.Queued == nil {
				t.Fatalf("Find = %+v, %v; want it queued", found, err)
			}
			equal(t, "wait", found.Queued.PerformAt.Sub(core.InstantOf(start)), 7*time.Minute)
		}},
		{"MaxPayloads", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{MaxPayloads: 2})
			for i := range 5 {
				push(t, store, q, "a", fmt.Sprint(i))
			}

			var calls [][]string
			runDue(t, store, skein.ServerOptions{}, q.Handler(func(_ context.Context, _ string, p []string) error {
				calls = append(calls, p)
				return nil
			}))
			equal(t, "calls", calls, [][]string{{"0", "1"}, {"2", "3"}, {"4"}})
		}},
		{"MaxPayloadBytes", func(t *testing.T, store *memory.Store) {
			client := skein.NewClient(store, skein.ClientOptions{})
			q := skein.NewQueue("q", options{MaxPayloadBytes: 10})
			if err := q.Push(t.Context(), client, "a", "12345678"); err != nil {
				t.Errorf("10 bytes with their quotes: %v", err)
			}
			if err := q.Push(t.Context(), client, "a", "123456789"); !errors.Is(err, skein.ErrInvalidPayload) {
				t.Errorf("11 bytes: %v, want ErrInvalidPayload", err)
			}
		}},
		{"IndexIDs", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{IndexIDs: true})
			push(t, store, q, "b", "x")
			push(t, store, q, "a", "x")
			page, err := store.Jobs(t.Context(), ports.JobsRequest{
				PageRequest: ports.PageRequest{Queue: "q"},
				SortBy:      ports.ByID,
			})
			if err != nil || len(page.Jobs) != 2 || page.Jobs[0].ID != "a" {
				t.Errorf("Jobs by id = %+v, %v; want a and b", page, err)
			}
		}},
		{"PushRule", func(t *testing.T, store *memory.Store) {
			at := func(q *skein.Queue[string], times ...time.Duration) time.Duration {
				start := time.Now()
				for i, d := range times {
					push(t, store, q, "a", fmt.Sprint(i), skein.In(d))
				}
				found, err := store.Find(t.Context(), ports.FindRequest{Queue: q.Name(), ID: "a", Payloads: 1000})
				if err != nil || found.Queued == nil {
					t.Fatalf("Find = %+v, %v; want it queued", found, err)
				}
				return found.Queued.PerformAt.Sub(core.InstantOf(start))
			}

			keep := skein.NewQueue("keep", options{})
			earliest := skein.NewQueue("earliest", options{PushRule: skein.Earliest()})
			debounce := skein.NewQueue("debounce", options{PushRule: skein.Debounce(0, 30*time.Second)})
			equal(t, "the queued job's time", at(keep, 20*time.Second, 10*time.Second), 20*time.Second)
			equal(t, "the sooner time", at(earliest, 20*time.Second, 10*time.Second, 15*time.Second), 10*time.Second)
			equal(t, "the later time", at(debounce, 10*time.Second, 20*time.Second, 15*time.Second), 20*time.Second)
			equal(t, "at most the limit", at(debounce, 50*time.Second), 30*time.Second)

			quiet := skein.NewQueue("quiet", options{PushRule: skein.Debounce(5*time.Second, 30*time.Second)})
			push(t, store, quiet, "a", "first")
			equal(t, "the queue's own delay", at(quiet), 5*time.Second)
			equal(t, "a push's own time", at(quiet, 10*time.Second), 10*time.Second)

			push(t, store, quiet, "now", "no delay", skein.At(time.Time{}))
			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "quiet", ID: "now", Payloads: 1})
			if err != nil || found.Queued == nil || found.Queued.PerformAt != found.Queued.FirstPush {
				t.Errorf("a push for now: %+v, %v; want it due at once", found.Queued, err)
			}
		}},
		{"Score", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{Score: func(s string) float64 { return -float64(len(s)) }})
			for _, p := range []string{"a", "ccc", "bb"} {
				push(t, store, q, "a", p)
			}
			push(t, store, q, "a", "one's own", skein.Score(-10))

			var got []string
			runDue(t, store, skein.ServerOptions{}, q.Handler(func(_ context.Context, _ string, p []string) error {
				got = p
				return nil
			}))
			equal(t, "order", got, []string{"one's own", "ccc", "bb", "a"})
		}},
		{"Timeout", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{BatchSize: 2, Shards: 1, Timeout: 3 * time.Second})
			push(t, store, q, "a", "x")
			push(t, store, q, "b", "x")

			var took []time.Duration
			runDue(t, store, skein.ServerOptions{}, q.Handler(func(ctx context.Context, _ string, _ []string) error {
				start := time.Now()
				<-ctx.Done()
				took = append(took, time.Since(start))
				return context.Cause(ctx)
			}))
			equal(t, "each id has its own", took, []time.Duration{3 * time.Second, 3 * time.Second})
			equal(t, "it is a failure", lastError(t, store, "a"), skein.ErrTimeout.Error())
		}},
		{"Codec", func(t *testing.T, store *memory.Store) {
			q := skein.NewQueue("q", options{Codec: bracketed{}})
			push(t, store, q, "a", "good")
			push(t, store, q, "a", "bad")

			var got []string
			runDue(t, store, skein.ServerOptions{}, q.Handler(func(_ context.Context, _ string, p []string) error {
				got = p
				return nil
			}))

			equal(t, "decoded", got, []string{"good"})
			found, err := store.Find(t.Context(), ports.FindRequest{Queue: "q", ID: "a", Payloads: 1000})
			if err != nil || found.DeadLetter == nil || string(found.DeadLetter.Payloads[0].Data) != "<bad>" {
				t.Errorf("Find = %+v, %v; want <bad> in the morgue", found, err)
			}
		}},
	}

	for _, c := range cases {
		t.Run(c.option, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { c.check(t, memory.New(memory.Options{})) })
		})
	}
}

// mostAtOnce runs 20 jobs of a queue, a second each, on 8 lanes, and returns how many ran at once
// at most.
func mostAtOnce(t *testing.T, store *memory.Store, q *skein.Queue[string]) (most int) {
	t.Helper()
	for i := range 20 {
		push(t, store, q, fmt.Sprint(i), "x")
	}

	var mu sync.Mutex
	running, done := 0, 0
	count := func(n int) {
		mu.Lock()
		defer mu.Unlock()
		running += n
		most = max(most, running)
		if n < 0 {
			done++
		}
	}

	h := q.Handler(func(context.Context, string, []string) error {
		count(1)
		time.Sleep(time.Second)
		count(-1)
		return nil
	})

	run(t, skein.NewServer(store, skein.ServerOptions{Lanes: 8, Logger: quiet}, h), func() { time.Sleep(time.Minute) })
	equal(t, "jobs done", done, 20)
	return most
}

// bracketed writes <payload> and refuses to read <bad>.
type bracketed struct{}

func (bracketed) Encode(s string) ([]byte, error) { return []byte("<" + s + ">"), nil }

func (bracketed) Decode(data []byte) (string, error) {
	s := strings.Trim(string(data), "<>")
	if s == "bad" {
		return "", errors.New("it is bad")
	}
	return s, nil
}

// abandon claims a job of shard 0 as an owner that is never heard of again, and
// lets its lease run out.
func abandon(t *testing.T, store ports.ShardStore, queue string) {
	t.Helper()
	shard := core.Shard{Queue: queue}
	lease, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Owner:      "lost",
		Attempt:    1,
		TTL:        time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := store.Turn(t.Context(), ports.TurnRequest{
		Lease: ports.Lease{Shard: shard, Owner: "lost", Token: lease.Token}, Number: 1, TTL: time.Second, Want: 1,
	})
	if err != nil || len(reply.Claims) != 1 {
		t.Fatalf("Turn = %+v, %v; want one claim", reply, err)
	}
	time.Sleep(2 * time.Second)
}

func TestBadQueuesAreRefusedByEveryPushAndByRun(t *testing.T) {
	type options = skein.QueueOptions[string]
	cases := []struct {
		name    string
		queue   string
		options options
		says    string
	}{
		{"no name", "", options{}, "empty"},
		{"a slash", "a/b", options{}, "letters"},
		{"negative shards", "q", options{Shards: -1}, "-1 shards"},
		{"too many shards", "q", options{Shards: core.MaxShards + 1}, "16385 shards"},
		{"large batches", "q", options{BatchSize: 257}, "BatchSize 257"},
		{"negative batches", "q", options{BatchSize: -1}, "BatchSize -1"},
		{"negative parallel batches", "q", options{Parallel: -1}, "Parallel -1"},
		{"negative lanes", "q", options{MaxLanes: -1}, "MaxLanes -1"},
		{"negative bound over all servers", "q", options{MaxRunning: -1}, "MaxRunning -1"},
		{"bound above what stores count", "q", options{MaxRunning: ports.MaxPermits + 1}, "MaxRunning 1048577"},
		{"negative retries", "q", options{MaxRetries: -2}, "NoRetries"},
		{"negative recoveries", "q", options{MaxRecoveries: -2}, "MaxRecoveries -2"},
		{"many payloads", "q", options{MaxPayloads: 1001}, "MaxPayloads 1001"},
		{"negative size", "q", options{MaxPayloadBytes: -1}, "MaxPayloadBytes -1"},
		{"negative timeout", "q", options{Timeout: -1}, "Timeout"},
		{"negative limit of a rule", "q", options{PushRule: skein.Debounce(0, -1)}, "limit -1ns"},
		{"negative quiet time", "q", options{PushRule: skein.Debounce(-1, 0)}, "quiet -1ns"},
		{
			"quiet time beyond the limit",
			"q",
			options{PushRule: skein.Debounce(2*time.Minute, 0)},
			"exceeds the limit 1m0s",
		},
		{"two mistakes", "q", options{BatchSize: -1, Timeout: -1}, "Timeout"},
	}

	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			q := skein.NewQueue(c.queue, c.options)
			store := memory.New(memory.Options{})
			pushed := q.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "a", "x")
			ran := skein.NewServer(store, skein.ServerOptions{}, nop(q)).Run(t.Context())

			for _, err := range []error{pushed, ran} {
				if !errors.Is(err, skein.ErrInvalidQueue) || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %v, want ErrInvalidQueue that says %q", err, c.says)
				}
			}
		})
	}
}

func TestBadServersSayAllMistakesAtOnce(t *testing.T) {
	q := skein.NewQueue("q", skein.QueueOptions[string]{})
	o := skein.ServerOptions{
		Lanes:           -1,
		PollInterval:    -1,
		LeaseTTL:        time.Millisecond,
		Prefetch:        -2,
		ShutdownTimeout: -1,
	}

	err := skein.NewServer(nil, o, nop(q), nop(q), skein.Handler{}).Run(t.Context())
	if !errors.Is(err, skein.ErrInvalidOptions) {
		t.Fatalf("Run = %v, want ErrInvalidOptions", err)
	}

	for _, says := range []string{
		"no store",
		"Lanes",
		"PollInterval",
		"TTL",
		"Prefetch",
		"ShutdownTimeout",
		"two handlers",
		"handler 3 of 3",
	} {
		if !strings.Contains(err.Error(), says) {
			t.Errorf("error does not speak of %q: %v", says, err)
		}
	}

	store := memory.New(memory.Options{})
	if err := skein.NewServer(store, skein.ServerOptions{}).Run(t.Context()); !errors.Is(err, skein.ErrInvalidOptions) {
		t.Errorf("Run without handlers = %v, want ErrInvalidOptions", err)
	}
	bad := skein.ServerOptions{Splitter: skein.NodeSplitter{Nodes: 2, Node: 2}}
	if err := skein.NewServer(store, bad, nop(q)).Run(t.Context()); !errors.Is(err, core.ErrSplit) {
		t.Errorf("Run of node 2 of 2 = %v, want ErrSplit", err)
	}
}

func TestAServerRunsOnce(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	s := skein.NewServer(memory.New(memory.Options{}), skein.ServerOptions{Logger: quiet},
		nop(skein.NewQueue("q", skein.QueueOptions[string]{})))
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(ctx); !errors.Is(err, skein.ErrInvalidOptions) {
		t.Errorf("second Run = %v, want ErrInvalidOptions", err)
	}
}

// The wait has a jitter of 0 to 29 steps, each of one more second than the retry's number.
func TestTheDefaultBackoffIsDrawnFromItsWholeRange(t *testing.T) {
	for _, retry := range []int{0, 1, 24} {
		shortest, longest := skein.DefaultBackoff(retry), time.Duration(0)
		for range 2000 {
			wait := skein.DefaultBackoff(retry)
			shortest, longest = min(shortest, wait), max(longest, wait)
		}
		base := time.Duration(retry*retry*retry*retry+15) * time.Second
		equal(t, fmt.Sprint("the shortest wait before retry ", retry), shortest, base)
		equal(t, fmt.Sprint("the longest wait before retry ", retry),
			longest, base+29*time.Duration(retry+1)*time.Second)
	}
}

func TestEqualPayloadsEncodeEquallyInJSON(t *testing.T) {
	codec := skein.JSONCodec[map[string]int]{}
	encode := func() string {
		payload := make(map[string]int)
		for i := range 50 { // a map of its own each time, so in an order of its own
			payload[fmt.Sprint(i)] = i
		}
		data, err := codec.Encode(payload)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	first := encode()
	for range 20 {
		equal(t, "encoding", encode(), first)
	}
}
