package kills_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

const failoverShards = 4

var failingOver = skein.NewQueue[int]("failing-over", skein.QueueOptions[int]{Shards: failoverShards})

// failover is producers and servers on a Postgres whose standby takes its place. The URL of each of
// their pools names both servers.
type failover struct {
	*testing.T
	pair *testservers.PostgresPair

	mu sync.Mutex
	// accepted has the ids of the accepted pushes. The value is true if the first attempt was
	// accepted: then the job is stored once.
	accepted map[string]bool
	// lines are the journal lines of the handlers. ended is how often the store has stored that a
	// job is done.
	lines []journalLine
	ended map[string]int
	// dropped are the leases that ran out.
	dropped int
	// running is how many handlers of each shard run, and highest its largest token.
	running [failoverShards]int
	highest [failoverShards]int64
}

func newFailover(t *testing.T) *failover {
	t.Helper()
	f := &failover{T: t, pair: testservers.PostgresWithStandby(t), accepted: map[string]bool{}, ended: map[string]int{}}
	must(t, postgres.Migrate(t.Context(), f.pair.Primary, postgres.MigrateOptions{}))
	_, err := f.store().Declare(t.Context(), ports.DeclareRequest{Queue: failingOver.Name(), Shards: failoverShards})
	must(t, err)
	// As if the primary's clock had been ahead of the standby's.
	ahead := int64(core.InstantOf(time.Now().Add(time.Hour)))
	kit.Exec(t, f.pair.Primary, fmt.Sprintf(`UPDATE skein.shards SET token = %d`, ahead))
	for shard := range f.highest {
		f.highest[shard] = ahead
	}
	return f
}

// connect opens a pool, as another process has it.
func (f *failover) connect() *pgxpool.Pool {
	f.Helper()
	return kit.PoolOf(f.T, f.pair.URL())
}

func (f *failover) store() *postgres.Store { return postgres.New(f.connect(), postgres.Options{}) }

// serve runs a server until stop is called.
func (f *failover) serve(node int) (stop func()) {
	f.Helper()
	server := skein.NewServer(f.store(), skein.ServerOptions{
		Lanes: 2, Observer: failoverObserver{f: f}, Logger: slog.New(slog.DiscardHandler),
	}, failingOver.JobHandler(func(ctx context.Context, job *skein.Job[int]) error {
		token, _ := skein.Fence(ctx)
		f.handle(journalLine{what: lineBegan, pid: node, id: job.ID, token: token})
		defer f.handle(journalLine{what: lineEnded, pid: node, id: job.ID, token: token})
		return nil
	}))
	stop = kit.Serve(f.T, server)
	f.Cleanup(stop)
	return stop
}

// handle notes a handler's call. A shard's tokens never go backwards, and it has one owner at a
// time.
func (f *failover) handle(l journalLine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lines = append(f.lines, l)
	shard := core.ShardOf(l.id, failoverShards)
	if l.what == lineEnded {
		f.running[shard]--
		return
	}
	if highest := f.highest[shard]; l.token < highest || l.token > highest && f.running[shard] > 0 {
		f.Errorf("%s begins under token %d, after %d, of which %d handlers run",
			l.id, l.token, highest, f.running[shard])
	}
	f.highest[shard] = l.token
	f.running[shard]++
}

// failoverObserver notes which results of a server the store has stored.
type failoverObserver struct {
	ports.NopObserver
	f *failover
}

// JobsEnded implements ports.Observer.
func (o failoverObserver) JobsEnded(e ports.EndEvent) {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	for _, job := range e.Jobs {
		if job.End == ports.EndDone {
			o.f.ended[job.ID]++
		}
	}
}

// LeaseChanged implements ports.Observer.
func (o failoverObserver) LeaseChanged(e ports.LeaseEvent) {
	o.f.mu.Lock()
	defer o.f.mu.Unlock()
	if e.Change == ports.LeaseDropped {
		o.f.dropped++
	}
}

// produce pushes jobs until the context ends, each in a call or a transaction of its own. It
// repeats a push until it is accepted.
func (f *failover) produce(ctx context.Context, name string, inTx bool) {
	pool := f.connect()
	store := postgres.New(pool, postgres.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	for n := 0; ctx.Err() == nil; n++ {
		id, first := fmt.Sprint(name, "-", n), true
		for f.pushOnce(client, pool, store, id, inTx) != nil {
			if first = false; ctx.Err() != nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		f.mu.Lock()
		f.accepted[id] = first
		f.mu.Unlock()
		time.Sleep(2 * time.Millisecond)
	}
}

func (f *failover) pushOnce(
	client *skein.Client,
	pool *pgxpool.Pool,
	store *postgres.Store,
	id string,
	inTx bool,
) error {
	if !inTx {
		return failingOver.Push(f.Context(), client, id, 1)
	}
	return pgx.BeginFunc(f.Context(), pool, func(tx pgx.Tx) error {
		return failingOver.Push(f.Context(), client.Via(store.Tx(tx)), id, 1)
	})
}

// done returns how many jobs have been accepted, and how many of these have not ended.
func (f *failover) done() (accepted, waiting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for id := range f.accepted {
		if f.ended[id] == 0 {
			waiting++
		}
	}
	return len(f.accepted), waiting
}

// until waits until so returns true.
func (f *failover) until(what string, so func() bool) {
	f.Helper()
	for end := time.Now().Add(testservers.Patience); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			accepted, waiting := f.done()
			f.Fatalf("not within %v: %s; %d jobs are accepted, %d of these wait",
				testservers.Patience, what, accepted, waiting)
		}
	}
}

// inboxNumber returns the last number of the inbox's sequence.
func (f *failover) inboxNumber(pool *pgxpool.Pool) (last int64) {
	f.Helper()
	must(f, pool.QueryRow(f.Context(), `SELECT last_value FROM skein.inbox_seq_seq`).Scan(&last))
	return last
}

// When the standby has taken the place of a primary that died, producers and servers continue by
// themselves: nothing that was accepted is lost or done twice, tokens and numbers continue from
// where they were, and the counts are exact.
func TestPostgresAFailoverLosesNothing(t *testing.T) {
	tier.Long(t, "waits for a failover")
	t.Parallel()
	f := newFailover(t)
	first, second := f.serve(1), f.serve(2)
	producing, stop := context.WithCancel(t.Context())
	defer stop()
	var producers sync.WaitGroup
	for _, name := range []string{"alone", "tx"} {
		producers.Go(func() { f.produce(producing, name, name == "tx") })
	}
	f.until("jobs are done", func() bool { accepted, waiting := f.done(); return accepted-waiting >= 200 })
	number := f.inboxNumber(f.pair.Primary)
	f.pair.KillPrimary()
	before, _ := f.done()
	f.pair.Promote(t)
	promoted := time.Now()
	f.until("more jobs are accepted", func() bool { accepted, _ := f.done(); return accepted >= before+200 })
	t.Logf("%d jobs accepted, and 200 more within %v of the promotion", before, time.Since(promoted))
	stop()
	producers.Wait()
	f.until("all is done", func() bool { _, waiting := f.done(); return waiting == 0 })
	if now := f.inboxNumber(f.pair.Standby); now <= number {
		t.Errorf("the inbox's numbers continued at %d, after %d", now, number)
	}
	f.passOn(first, second)
	f.check()
}

// passOn stops all servers and starts another one, which works jobs of each shard under new tokens.
func (f *failover) passOn(stop ...func()) {
	f.Helper()
	for _, one := range stop {
		one()
	}
	f.mu.Lock()
	tokens := f.highest
	f.mu.Unlock()
	stopLast := f.serve(3)
	client := skein.NewClient(f.store(), skein.ClientOptions{})
	for n := range 8 * failoverShards {
		id := fmt.Sprint("after-", n)
		must(f, failingOver.Push(f.Context(), client, id, 1))
		f.mu.Lock()
		f.accepted[id] = true
		f.mu.Unlock()
	}
	f.until("another server does the rest", func() bool { _, waiting := f.done(); return waiting == 0 })
	stopLast()
	for shard, token := range tokens {
		if f.highest[shard] <= token {
			f.Errorf("shard %d was passed on under token %d, after %d", shard, f.highest[shard], token)
		}
	}
}

// check compares the promoted server with the accepted pushes and the executions.
func (f *failover) check() {
	f.Helper()
	replay(f.T, f.lines)
	total := 0
	for id, ended := range f.ended {
		total += ended
		if f.accepted[id] && ended > 1 && f.dropped == 0 {
			f.Errorf("%s was pushed once and has ended %d times", id, ended)
		}
	}
	store := postgres.New(f.pair.Standby, postgres.Options{})
	stats, err := store.Stats(f.Context(), ports.StatsRequest{Queues: []string{failingOver.Name()}})
	must(f, err)
	c := stats[0].Counts
	if c.Fresh+c.Retrying+c.Claimed+c.Dead != 0 {
		f.Errorf("all has ended, and the counts are %+v", c)
	}
	if int(c.Processed) < total || int(c.Processed) > total && f.dropped == 0 {
		f.Errorf("%d jobs are counted as processed, and %d have ended; %d leases ran out",
			c.Processed, total, f.dropped)
	}
	for _, shard := range core.Shards(failingOver.Name(), failoverShards) {
		counts, err := kit.Recounted(f.Context(), store, shard)
		must(f, err)
		if diff := cmp.Diff(counts.After, counts.Before); diff != "" {
			f.Errorf("%v was counted wrong (-want +got):\n%s", shard, diff)
		}
	}
}
