package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// joinedStatements is a tracer that counts the statements of pushes that have gone together.
type joinedStatements struct{ n atomic.Int64 }

// TraceQueryStart implements pgx.QueryTracer.
func (j *joinedStatements) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	if strings.Contains(q.SQL, ".push_together(") {
		j.n.Add(1)
	}
	return ctx
}

// TraceQueryEnd implements pgx.QueryTracer.
func (*joinedStatements) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

// joined is a workbench whose store's statements are counted.
type joined struct {
	*workbench
	counted joinedStatements
}

// callers push at the same time.
type callers struct {
	*joined
	pushing sync.WaitGroup
	start   chan struct{}
}

// pushed is the result of one push.
type pushed struct {
	reply ports.PushReply
	err   error
}

func newJoined(t *testing.T) *joined {
	j := &joined{workbench: newWorkbench(t, time.Minute)}
	j.store = postgres.New(
		kit.PoolLike(t, j.pool, func(c *pgxpool.Config) { c.ConnConfig.Tracer, c.MaxConns = &j.counted, 8 }),
		postgres.Options{Schema: j.schema, NoWakeups: true})
	return j
}

// rounds has callers push at the same time, in rounds, until pushes have gone together in some.
func (j *joined) rounds(round func(c *callers, n int) (check func())) {
	j.t.Helper()
	for n := 0; j.counted.n.Load() < 10; n++ {
		if n == 1000 {
			j.t.Fatal("in 1,000 rounds no pushes went together")
		}
		c := &callers{joined: j, start: make(chan struct{})}
		check := round(c, n)
		close(c.start)
		c.pushing.Wait()
		if check(); j.t.Failed() {
			return
		}
	}
}

func (c *callers) push(queue string, generation int64, id, payload string, when core.When) *pushed {
	p := new(pushed)
	c.pushing.Go(func() {
		<-c.start
		p.reply, p.err = c.store.Push(c.t.Context(), ports.PushRequest{
			Queue: queue, Shards: 1, Generation: generation,
			Entries: []core.Entry{{ID: id, Payload: core.Payload{Data: []byte(payload)}, When: when}},
		})
	})
	return p
}

// Each of several pushes that go together has the reply that it would have alone.
func TestPostgresPushesThatGoTogetherHaveTheirOwnReplies(t *testing.T) {
	t.Parallel()
	j := newJoined(t)
	_, err := j.store.Declare(t.Context(), ports.DeclareRequest{
		Queue: "latest", Shards: 1, Merge: core.MergeRule{Stays: core.Highest},
	})
	j.must(err)
	j.must(j.push(j.store, "queued"))

	jobs := 1
	j.rounds(func(c *callers, n int) func() {
		var news, same []*pushed
		for i := range 8 {
			news = append(news, c.push("orders", 1, fmt.Sprint("new-", n, "-", i), "paid", core.When{}))
		}
		news = append(news, c.push("orders", 1, fmt.Sprint("later-", n), "paid", core.In(time.Hour)))
		for i := range 4 {
			same = append(same, c.push("orders", 1, fmt.Sprint("same-", n), fmt.Sprint(i%2), core.When{}))
		}
		queued := c.push("orders", 1, "queued", fmt.Sprint("payload-", n), core.When{})
		unknown := c.push("unknown", 1, "order", "paid", core.When{})
		mismatch := c.push("orders", 7, "order", "paid", core.When{})
		byRule := c.push("latest", 1, fmt.Sprint("new-", n), "paid", core.When{})
		jobs += len(news) + 1

		return func() {
			for i, p := range append(news, byRule) {
				if p.err != nil || p.reply.New != 1 || p.reply.Merged+p.reply.Duplicate != 0 || p.reply.Now == 0 {
					t.Errorf("push %d of a new id has %+v (%v), want one new job", i, p.reply, p.err)
				}
			}
			var met ports.PushReply
			for _, p := range same {
				met.Add(p.reply)
			}
			if met.New != 1 || met.Merged != 1 || met.Duplicate != 2 {
				t.Errorf("pushes for one id have met %+v, want one new, one merged and two equal payloads", met)
			}
			if queued.err != nil || queued.reply.Merged != 1 || queued.reply.New != 0 {
				t.Errorf("the push for a queued id has %+v (%v), want one merged payload", queued.reply, queued.err)
			}
			if !errors.Is(unknown.err, ports.ErrUnknownQueue) || !errors.Is(mismatch.err, ports.ErrShardCountMismatch) {
				t.Errorf("the pushes with wrong names have %v and %v", unknown.err, mismatch.err)
			}
		}
	})

	stats, err := j.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
	j.must(err)
	if got := int(stats[0].Fresh); got != jobs {
		t.Errorf("%d jobs are counted, want %d", got, jobs)
	}
	var stored int
	j.must(j.pool.QueryRow(t.Context(), fmt.Sprintf(
		`SELECT count(*) FROM %s.jobs WHERE id LIKE 'later-%%' AND perform_at > first_push`, j.schema)).Scan(&stored))
	if stored == 0 {
		t.Error("no job that was pushed for later is due later")
	}
}

// A job that a session holds locked delays only the pushes for its id.
func TestPostgresALockedJobDelaysNoPushThatGoesTogetherWithItsOwn(t *testing.T) {
	t.Parallel()
	j := newJoined(t)
	j.must(j.push(j.store, "locked"))

	j.rounds(func(c *callers, n int) func() {
		locking, err := j.pool.Begin(t.Context())
		j.must(err)
		_, err = locking.Exec(t.Context(), fmt.Sprintf(`SELECT FROM %s.jobs WHERE id = 'locked' FOR UPDATE`, j.schema))
		j.must(err)

		var waits sync.WaitGroup
		var held error
		waits.Go(func() {
			<-c.start
			_, held = j.store.Push(t.Context(), ports.PushRequest{
				Queue: "orders", Shards: 1, Generation: 1,
				Entries: []core.Entry{{ID: "locked", Payload: core.Payload{Data: []byte(fmt.Sprint(n))}}},
			})
		})
		var others []*pushed
		for i := range 12 {
			others = append(others, c.push("orders", 1, fmt.Sprint("new-", n, "-", i), "paid", core.When{}))
		}

		return func() { // the others have returned
			j.must(locking.Rollback(t.Context()))
			waits.Wait()
			j.must(held)
			for _, p := range others {
				if p.err != nil || p.reply.New != 1 {
					t.Errorf("a push beside one for a locked job has %+v (%v), want one new job", p.reply, p.err)
				}
			}
		}
	})
}

// While most pushes to a queue are for queued ids, its pushes go alone.
func TestPostgresPushesThatMergeDoNotGoTogether(t *testing.T) {
	t.Parallel()
	j := newJoined(t)
	round := func() {
		c := &callers{joined: j, start: make(chan struct{})}
		for i := range 20 {
			c.push("orders", 1, fmt.Sprint(i), "paid", core.When{})
		}
		close(c.start)
		c.pushing.Wait()
	}

	round() // makes the jobs
	for n, before := 0, j.counted.n.Load(); j.counted.n.Load() == before; n++ {
		if n == 1000 {
			t.Fatal("in 1,000 rounds no pushes went together")
		}
		round()
	}
	before := j.counted.n.Load()
	for range 20 {
		round()
	}
	if got := j.counted.n.Load() - before; got > 0 {
		t.Errorf("%d exchanges of several pushes were sent for queued ids", got)
	}
}

// Pushes that go together find the jobs of their ids by index, however many jobs there are.
func TestPostgresPushesThatGoTogetherReadWhatTheyMeet(t *testing.T) {
	t.Parallel()
	for name, analyzed := range plannedFor {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := map[int]int{}
			for _, rows := range []int{2_000, 100_000} {
				w := newWorkbench(t, time.Minute)
				w.plansFor("jobs")
				kit.Exec(t, w.pool, fmt.Sprintf(`
					INSERT INTO %[1]s.jobs (shard, id, perform_at, first_push, retry_count, recoveries, has_more, score, data)
					SELECT 0, 'other-' || g, 1, 1, -1, 0, false, 0, 'x' FROM generate_series(1, %[2]d) g`,
					w.schema, rows))
				if analyzed {
					w.plansFor("jobs")
				}
				read[rows] = w.pagesOf(fmt.Sprintf(`
					SELECT * FROM (
						SELECT array_agg(0) AS indexes, array_agg(g.id ORDER BY g.id COLLATE "C") AS ids,
							array_agg(0::float8) AS scores, array_agg('x'::bytea) AS data, array_agg(NULL::bytea) AS meta
						FROM (SELECT 'other-' || n * 17 FROM generate_series(1, 32) n
							UNION ALL SELECT 'new-' || n FROM generate_series(1, 32) n) g (id)
					) e, LATERAL %[1]s.push_together('orders', 1, 1, NULL, e.indexes, e.ids, NULL, NULL, e.scores, e.data, e.meta)`,
					w.schema))
			}
			if read[100_000] > 2*read[2_000] {
				t.Errorf("64 pushes beside 100,000 jobs read %d pages, beside 2,000 %d", read[100_000], read[2_000])
			}
		})
	}
}
