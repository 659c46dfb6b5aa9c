package integration_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/dashboard"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// measured is a queue of many shards, whose lists and statistics are timed.
type measured struct {
	kit.Orders
	jobs int
	// cpu returns the processor time that the server has used, nil if that isn't known.
	cpu func() time.Duration
}

// The test logs the time of lists, statistics and Find in a queue of SKEIN_TEST_LIST_SHARDS shards.
// It has SKEIN_TEST_LIST_JOBS jobs, a tenth as many dead letters, a claimed job in each shard, and
// a full audit. A fiftieth of the jobs are retries. Without these variables the queue is small.
func TestRedisListsOfManyShards(t *testing.T) {
	tier.Long(t, "measures")
	client := testservers.OwnRedis(t)
	cpu := func() time.Duration { return mainThread(t, client) }
	m := newMeasured(t, redis.New(client, redis.Options{}), cpu)
	m.parts()
}

// As TestRedisListsOfManyShards.
func TestPostgresListsOfManyShards(t *testing.T) {
	tier.Long(t, "measures")
	pool := testservers.OwnPostgres(t, "fsync=off")
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
	m := newMeasured(t, postgres.New(pool, postgres.Options{NoWakeups: true}), nil)
	kit.Exec(t, pool, `VACUUM ANALYZE`)
	m.parts()
}

// parts measures each part by itself, so that -run can choose some. A part finds the jobs that the
// one before has left.
func (m *measured) parts() {
	for _, part := range []struct {
		name string
		run  func(*measured)
	}{
		{"lists", (*measured).measure},
		{"routes", func(m *measured) { m.routes("") }},
		{"pages", func(m *measured) { m.pages("") }},
		{"polled", (*measured).polled},
		{"revive", (*measured).revive},
		{"at work", (*measured).routesAtWork},
	} {
		m.T.Run(part.name, func(t *testing.T) {
			of := *m
			of.T = t
			part.run(&of)
		})
	}
}

// mainThread returns the processor time that a server's main thread has taken.
func mainThread(t *testing.T, client goredis.UniversalClient) time.Duration {
	t.Helper()
	text, err := client.Info(t.Context(), "cpu").Result()
	must(t, err)
	var sum float64
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name == "used_cpu_user_main_thread" || name == "used_cpu_sys_main_thread" {
			seconds, err := strconv.ParseFloat(value, 64)
			must(t, err)
			sum += seconds
		}
	}
	return time.Duration(sum * float64(time.Second))
}

// newMeasured fills a queue: a tenth more is pushed than stays, and goes to the morgue.
func newMeasured(t *testing.T, store ports.ShardStore, cpu func() time.Duration) *measured {
	t.Helper()
	o := kit.Orders{T: t, Store: store, Shards: kit.FromVariable(t, "SKEIN_TEST_LIST_SHARDS", 50)}
	m := &measured{Orders: o, jobs: kit.FromVariable(t, "SKEIN_TEST_LIST_JOBS", 5000), cpu: cpu}
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: m.Shards, IndexIDs: true})
	must(t, err)
	m.Push("dead", m.jobs/10)
	m.Bury()
	m.Push("order", m.jobs)
	m.Fail(m.jobs / 50 / m.Shards)
	m.audit()
	return m
}

// audit fills the audit, which keeps a thousand actions.
func (m *measured) audit() {
	m.T.Helper()
	for n := range 1000 {
		ids := []string{fmt.Sprintf("order-%07d", n)}
		must(m.T, m.Store.Audit(m.T.Context(), ports.Action{
			ID:      fmt.Sprint(n),
			Verb:    "revive",
			Queue:   "orders",
			IDs:     ids,
			Named:   1,
			Handled: 1,
			Actor:   "ann",
			Ended:   true,
		}))
	}
}

// rounds is how often each call is timed: enough for a p99 where much is measured.
func (m *measured) rounds() int {
	if m.jobs < 100_000 {
		return 1
	}
	return 100
}

func (m *measured) measure() {
	m.T.Logf("%d jobs, %d retries, %d dead letters, %d shards; %d calls of each",
		m.jobs, m.jobs/50, m.jobs/10, m.Shards, m.rounds())
	m.time("Stats", func(ctx context.Context) error {
		_, err := m.Store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
		return err
	})
	m.time("Stats of a shard", func(ctx context.Context) error {
		_, err := m.Store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}, Shards: []int{m.Shards / 2}})
		return err
	})
	m.time("Find", func(ctx context.Context) error {
		_, err := m.Store.Find(ctx, ports.FindRequest{Queue: "orders", ID: "order-0000007", Payloads: 1000})
		return err
	})
	m.time("Claimed", func(ctx context.Context) error {
		_, err := m.Store.Claimed(ctx, ports.PageRequest{Queue: "orders"})
		return err
	})
	m.time("Groups", func(ctx context.Context) error {
		_, err := m.Store.Groups(ctx, ports.GroupsRequest{Queue: "orders"})
		return err
	})
	for order := ports.ByTime; order <= ports.RetryingByCount; order++ {
		m.list(order.String(), func(ctx context.Context, r ports.PageRequest) (ports.Cursor, error) {
			page, err := m.Store.Jobs(ctx, ports.JobsRequest{PageRequest: r, SortBy: order})
			return page.Next, err
		})
	}
	for _, byID := range []bool{false, true} {
		m.list(fmt.Sprintf("Morgue, by id %t", byID),
			func(ctx context.Context, r ports.PageRequest) (ports.Cursor, error) {
				page, err := m.Store.Morgue(ctx, ports.MorgueRequest{PageRequest: r, ByID: byID})
				return page.Next, err
			})
	}
}

// errNoMiddle is for a list of one page.
var errNoMiddle = errors.New("the list has one page only")

// list times a list's first page, both ways, and pages from the middle of it, which it finds by
// pages of the largest size.
func (m *measured) list(name string, page func(context.Context, ports.PageRequest) (ports.Cursor, error)) {
	m.T.Helper()
	var middle []ports.Cursor
	r := ports.PageRequest{Queue: "orders", Limit: ports.MaxPage}
	for range 30 {
		next, err := page(m.T.Context(), r)
		must(m.T, err)
		if next == (ports.Cursor{}) {
			break
		}
		middle, r.After = append(middle, next), next
	}
	for _, descending := range []bool{false, true} {
		r := ports.PageRequest{Queue: "orders", Descending: descending}
		m.time(fmt.Sprintf("%s, down %t, first page", name, descending),
			func(ctx context.Context) error { _, err := page(ctx, r); return err })
		if len(middle) == 0 {
			m.T.Logf("%s: %v", name, errNoMiddle)
			continue
		}
		n := 0
		m.time(fmt.Sprintf("%s, down %t, further in", name, descending), func(ctx context.Context) error {
			n++
			r.After = middle[n%len(middle)]
			_, err := page(ctx, r)
			return err
		})
	}
}

// time logs how long a call takes.
func (m *measured) time(what string, call func(context.Context) error) {
	m.T.Helper()
	must(m.T, call(m.T.Context())) // the server may not know a script or a plan yet
	var took kit.Spread
	var before time.Duration
	if m.cpu != nil {
		before = m.cpu()
	}
	for range m.rounds() {
		began := time.Now()
		must(m.T, call(m.T.Context()))
		took = append(took, time.Since(began))
	}
	line := fmt.Sprintf("%-40s p50 %8v  p99 %8v  most %8v", what, took.At(50).Round(10*time.Microsecond),
		took.At(99).Round(10*time.Microsecond), slices.Max(took).Round(10*time.Microsecond))
	if m.cpu != nil {
		line += fmt.Sprintf("  server %8v", ((m.cpu() - before) / time.Duration(m.rounds())).Round(10*time.Microsecond))
	}
	m.T.Log(line)
}

// revive revives all dead letters by a filter. The first call is stopped in the middle, and a
// second one continues from its checkpoint. Each letter is revived once.
func (m *measured) revive() {
	m.T.Helper()
	m.T.Run("revive", func(t *testing.T) {
		before := m.Counts(t)
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		var text inspect.Checkpoint
		o := inspect.BulkOptions{Filter: "all", Checkpoint: func(c inspect.Checkpoint) { text = c }}
		o.Progress = func(p inspect.Progress) {
			if p.Done > p.Total/2 {
				stop()
			}
		}
		all := func(d inspect.DeadLetter) bool { return d.PayloadCount > 0 }
		first, err := inspect.New(m.Store, inspect.Options{}).Revive(ctx, "orders", inspect.AllDead(all, o))
		if !errors.Is(err, context.Canceled) || first.Handled == 0 || first.Checkpoint != text {
			t.Fatalf("the first call returned %+v, %v; want context.Canceled, its checkpoint and a part of the letters",
				first, err)
		}
		second, err := inspect.New(m.Store, inspect.Options{}).Revive(t.Context(), "orders",
			inspect.AllDead(all, inspect.BulkOptions{Filter: "all", Continue: text}))
		must(t, err)
		// It is logged, and compared with nothing: a slow machine prints more.
		t.Logf("%d of %d dead letters over %d shards revived in %v, %d by the first",
			second.Handled, before.Dead, m.Shards, time.Since(began), first.Handled)
		after := m.Counts(t)
		if after.Dead != 0 || after.Fresh != before.Fresh+before.Dead {
			t.Errorf("%d letters are dead and %d jobs fresh, of %d and %d before",
				after.Dead, after.Fresh, before.Dead, before.Fresh)
		}
	})
}

// apiRoutes are the requests by which a page or an operator reads over HTTP.
var apiRoutes = []string{
	"stats", "queues", "queues/orders", "queues/orders/history", "queues/orders/jobs",
	"queues/orders/jobs?sort=id&desc=true",
	"queues/orders/jobs?sort=retrying", "queues/orders/jobs?sort=retries&desc=true",
	"queues/orders/jobs?shard=1&payloads=3",
	"queues/orders/claimed", "queues/orders/morgue", "queues/orders/morgue?sort=id", "queues/orders/groups",
	"queues/orders/quarantine",
	"find?queue=orders&id=order-0000007", "find?id=order-0000007", "why?queue=orders&id=order-0000007",
	"nodes", "checks",
}

// routes times each of apiRoutes.
func (m *measured) routes(what string) {
	m.T.Helper()
	server := kit.ServeAPI(m.T, m.Store)
	for _, route := range apiRoutes {
		m.time(what+route, func(ctx context.Context) error {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server+"/api/v1/"+route, nil)
			if err != nil {
				return err
			}
			reply, err := http.DefaultClient.Do(r)
			if err != nil {
				return err
			}
			text, err := io.ReadAll(reply.Body)
			if err == nil && reply.StatusCode != http.StatusOK {
				err = fmt.Errorf("%s: %s", reply.Status, text)
			}
			return err
		})
	}
}

// routesAtWork times apiRoutes while a server works the queue and a client pushes to it.
func (m *measured) routesAtWork() {
	m.T.Helper()
	w := kit.StartOwnWork(m.T, m.Orders)
	m.routes("at work: ")
	w.End(m.T)
}

// boardPages are pages of the dashboard as people open them.
var boardPages = []string{
	"", "queue?q=orders", "shards?q=orders", "jobs?q=orders", "jobs?q=orders&list=fresh",
	"jobs?q=orders&list=retries&sort=failures",
	"jobs?q=orders&list=scheduled", "jobs?q=orders&sort=id&desc=1", "jobs?q=orders&shard=1",
	"id?q=orders&id=order-0000007", "search?for=order-0000007",
	"busy", "busy?q=orders", "morgue?q=orders", "morgue?q=orders&sort=id", "unreadable?q=orders", "nodes",
	"store", "audit", "audit?q=orders",
}

// pages times each page twice: as the first page of a new process, and in a process that serves
// others.
func (m *measured) pages(what string) {
	m.T.Helper()
	warm := serveBoard(m.T, m.Store)
	for _, page := range boardPages {
		m.time(what+"first page /"+page, func(ctx context.Context) error {
			server := serveBoard(m.T, m.Store)
			defer server.Close()
			return getPage(ctx, server.URL+"/"+page)
		})
		m.time(what+"page /"+page, func(ctx context.Context) error { return getPage(ctx, warm.URL+"/"+page) })
	}
}

// polled logs the share of a core that the server spends when ten people look at the overview, and
// ten at a queue, for a minute if the measurement is large.
func (m *measured) polled() {
	m.T.Helper()
	if m.cpu == nil {
		return
	}
	server := serveBoard(m.T, m.Store)
	polls := max(1, m.rounds()*3/10)
	began, before := time.Now(), m.cpu()
	for range polls {
		for n := range 20 {
			must(m.T, getPage(m.T.Context(), server.URL+[]string{"/", "/queue?q=orders"}[n%2]))
		}
		time.Sleep(2 * time.Second) // the pace of a page that polls, on a slow machine too
	}
	// They are logged, and compared with nothing: a slow machine prints more.
	took, used := time.Since(began), m.cpu()-before
	m.T.Logf("20 pages polled for %v take %.2f %% of a core of the server",
		took.Round(time.Second), 100*used.Seconds()/took.Seconds())
}

func serveBoard(t *testing.T, store ports.ShardStore) *httptest.Server {
	t.Helper()
	board, err := dashboard.New(inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}),
		dashboard.Options{})
	must(t, err)
	server := httptest.NewServer(board)
	t.Cleanup(server.Close)
	return server
}

func getPage(ctx context.Context, url string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer func() { _ = reply.Body.Close() }()
	text, err := io.ReadAll(reply.Body)
	if err == nil && !slices.Contains([]int{http.StatusOK, http.StatusSeeOther}, reply.StatusCode) {
		err = fmt.Errorf("%s: %s: %s", url, reply.Status, text)
	}
	return err
}
