package kills_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/signal"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// bookings and ledger are queues of numbers to be booked, each once, in order, and by itself. A
// number that fails too often is buried in the first, and holds its id in the second.
var (
	bookings = bookingQueue("bookings", skein.BuryFirst)
	ledger   = bookingQueue("ledger", skein.Hold)
)

func bookingQueue(name string, exhausted skein.Exhaustion) *skein.Queue[int] {
	return skein.NewQueue(name, skein.QueueOptions[int]{
		MaxRetries:    bookingRetries,
		MaxRecoveries: 1000,
		Exhausted:     exhausted,
		Backoff:       func(int) time.Duration { return 0 },
		Score:         func(number int) float64 { return float64(number) },
	})
}

const (
	bookingRetries = 2
	// bookingFailures is the number of bookings in a hundred that fail at random.
	bookingFailures = 20
	// bookingVariable names the LeaseTTL of a booking worker. With a short one, the claims of a
	// killed process are taken over soon. With many payloads the default is better: a call is
	// cancelled after a third of the TTL, and on a busy machine this happens again and again if the
	// TTL is short.
	bookingVariable = "SKEIN_TEST_WORKER_TTL"
)

const bookingTables = `
CREATE TABLE %[1]s.booked (place bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL, number int NOT NULL);
CREATE TABLE %[1]s.refused (id text NOT NULL, number int NOT NULL)`

// bookingWorker is a server that books each number in a transaction of its own, in which it also
// settles it. One booking in five fails, before or after that, and is noted first. It ends by an
// interrupt.
func bookingWorker() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	b, err := backends.Connect(ctx, os.Getenv(storeVariable))
	if err != nil {
		return err
	}
	defer func() { _ = b.Close() }()
	store := b.Store.(*postgres.Store)
	booking := func(ctx context.Context, id string, number int) error {
		return book(ctx, b.Pool, store, b.Schema, id, number)
	}
	ttl, err := time.ParseDuration(os.Getenv(bookingVariable))
	if err != nil {
		return err
	}
	options := skein.ServerOptions{LeaseTTL: ttl, Logger: slog.New(slog.DiscardHandler)}
	return skein.NewServer(store, options, bookings.Each(booking), ledger.Each(booking)).Run(ctx)
}

func book(ctx context.Context, pool *pgxpool.Pool, store *postgres.Store, schema, id string, number int) error {
	fails := rand.N(100) < bookingFailures
	if fails {
		if _, err := pool.Exec(ctx, "INSERT INTO "+schema+".refused VALUES ($1, $2)", id, number); err != nil {
			return err
		}
	}
	if fails && rand.N(2) == 0 {
		return errors.New("the bank does not answer")
	}
	return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
		if err := skein.SettleIn(ctx, store.Tx(tx)); err != nil {
			return err
		}
		if _, err := tx.Exec(
			ctx, "INSERT INTO "+schema+".booked (id, number) VALUES ($1, $2)", id, number,
		); err != nil {
			return err
		}
		if fails {
			return errors.New("the bank refuses")
		}
		return nil
	})
}

// Each payload of an id is booked once and in order, whatever its neighbours do and however often
// the process is killed. Only payloads that failed three times themselves are in the morgue.
func TestPostgresBooksEachPayloadOnceAndInOrder(t *testing.T) {
	t.Parallel()
	bookAll(t, bookings)
}

// With Hold no payload is skipped: an operator releases the jobs that are held, and in the end each
// payload is booked.
func TestPostgresBooksEveryPayloadOfAQueueThatHolds(t *testing.T) {
	t.Parallel()
	bookAll(t, ledger)
}

func bookAll(t *testing.T, queue *skein.Queue[int]) {
	for name, of := range map[string]booked{
		"some": {400, 8, 1, 3 * time.Second},
		"many": {100_000, 500, 5, skein.DefaultLeaseTTL},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "many" {
				tier.Long(t, "books a hundred thousand payloads")
			}
			t.Parallel()
			bookPayloads(t, queue, of)
		})
	}
}

// booked has the numbers of a test: how much it books, how often it kills the server, and the
// server's LeaseTTL.
type booked struct {
	payloads, ids, kills int
	ttl                  time.Duration
}

func bookPayloads(t *testing.T, queue *skein.Queue[int], of booked) {
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}))
	_, err := pool.Exec(t.Context(), fmt.Sprintf(bookingTables, schema))
	must(t, err)
	store := postgres.New(pool, postgres.Options{Schema: schema})
	pushBookings(t, store, queue, of.payloads, of.ids)
	url, ttl := kit.PostgresURL(t, schema), bookingVariable+"="+of.ttl.String()
	for kill := range of.kills {
		p := startProgram(t, os.Args[0], "booking", url, newJournal(t), ttl)
		awaitBooked(t, pool, store, queue, schema, (kill+1)*of.payloads/(of.kills+2))
		p.kill(t)
	}
	p := startProgram(t, os.Args[0], "booking", url, newJournal(t), ttl)
	awaitEmpty(t, store, queue)
	p.interrupt(t)
	checkBookings(t, pool, store, queue, schema, of.payloads, of.ids)
}

func pushBookings(t *testing.T, store *postgres.Store, queue *skein.Queue[int], payloads, ids int) {
	t.Helper()
	client := skein.NewClient(store, skein.ClientOptions{})
	var entries []skein.Entry[int]
	for number := range payloads {
		entries = append(entries, skein.Entry[int]{ID: fmt.Sprint("account-", number%ids), Payload: number})
		if len(entries) == 5_000 || number == payloads-1 {
			must(t, queue.PushMany(t.Context(), client, entries))
			entries = entries[:0]
		}
	}
}

// awaitBooked waits until the given number of payloads is booked.
func awaitBooked(
	t *testing.T,
	pool *pgxpool.Pool,
	store *postgres.Store,
	queue *skein.Queue[int],
	schema string,
	want int,
) {
	t.Helper()
	awaitProgress(t, func() (have int, done bool) {
		releaseHeld(t, store, queue)
		must(t, pool.QueryRow(t.Context(), "SELECT count(*) FROM "+schema+".booked").Scan(&have))
		return have, have >= want
	})
}

// releaseHeld releases the held jobs, as an operator does, if the queue is the ledger.
func releaseHeld(t *testing.T, store *postgres.Store, queue *skein.Queue[int]) {
	t.Helper()
	if queue != ledger {
		return
	}
	_, err := inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)}).Release(t.Context(),
		queue.Name(), inspect.AllJobs(nil, inspect.BulkOptions{}))
	must(t, err)
}

// awaitEmpty waits until no job of the queue is left.
func awaitEmpty(t *testing.T, store *postgres.Store, queue *skein.Queue[int]) {
	t.Helper()
	inspector := inspect.New(store, inspect.Options{})
	awaitProgress(t, func() (have int, done bool) {
		releaseHeld(t, store, queue)
		all, err := inspector.Stats(t.Context(), queue.Name())
		must(t, err)
		c := all[0].Counts
		return int(c.Processed + c.Failed), c.Length()+c.Claimed == 0
	})
}

// awaitProgress waits until count returns done. It ends the test if the count does not change for a
// long time.
func awaitProgress(t *testing.T, count func() (have int, done bool)) {
	t.Helper()
	last, since := -1, time.Now()
	for {
		have, done := count()
		switch {
		case done:
			return
		case have != last:
			last, since = have, time.Now()
		case time.Since(since) > testservers.Patience:
			t.Fatalf("nothing has changed for %v: %d", testservers.Patience, have)
		}
		time.Sleep(20 * time.Millisecond) // a slow machine only polls less often
	}
}

func checkBookings(
	t *testing.T,
	pool *pgxpool.Pool,
	store *postgres.Store,
	queue *skein.Queue[int],
	schema string,
	payloads, ids int,
) {
	t.Helper()
	dead := make(map[int]bool)
	for letter, err := range inspect.New(store, inspect.Options{}).Morgue(
		t.Context(), queue.Name(), inspect.ListOptions{Payloads: 1000},
	) {
		must(t, err)
		for _, p := range letter.Payloads {
			var number int
			_, err := fmt.Sscan(string(p.Data), &number)
			must(t, err)
			dead[number] = true
		}
	}
	booked := make([]int, payloads)
	last := make(map[string]int)
	rows, err := pool.Query(t.Context(), "SELECT id, number FROM "+schema+".booked ORDER BY place")
	must(t, err)
	var id string
	var number int
	_, err = pgx.ForEachRow(rows, []any{&id, &number}, func() error {
		booked[number]++
		if before, ok := last[id]; ok && before >= number {
			t.Errorf("%s: %d was booked after %d", id, number, before)
		}
		last[id] = number
		return nil
	})
	must(t, err)
	refusals := countRefusals(t, pool, schema)
	for number, times := range booked {
		switch {
		case dead[number] && (times > 0 || refusals[number] <= bookingRetries):
			t.Errorf("%d is in the morgue; it was booked %d times and refused %d times",
				number, times, refusals[number])
		case !dead[number] && times != 1:
			t.Errorf("%d was booked %d times, want once", number, times)
		}
	}
	if queue == ledger && len(dead) > 0 {
		t.Errorf("%d payloads of a queue that holds are in the morgue", len(dead))
	}
	t.Logf("%d payloads over %d ids, %d in the morgue", payloads, ids, len(dead))
}

// countRefusals returns how often each number was refused.
func countRefusals(t *testing.T, pool *pgxpool.Pool, schema string) map[int]int {
	t.Helper()
	refusals := make(map[int]int)
	rows, err := pool.Query(t.Context(), "SELECT number, count(*) FROM "+schema+".refused GROUP BY number")
	must(t, err)
	var number, times int
	_, err = pgx.ForEachRow(rows, []any{&number, &times}, func() error {
		refusals[number] = times
		return nil
	})
	must(t, err)
	return refusals
}

// A transaction settles one payload, also if each has a savepoint of its own. What it rolls back
// stays claimed, and the job fails with all its payloads.
func TestPostgresTransactionsSettleOnePayload(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}))
	store := postgres.New(pool, postgres.Options{Schema: schema})
	queue := skein.NewQueue("payloads", skein.QueueOptions[int]{MaxRetries: 5, Backoff: func(int) time.Duration {
		return 0
	}})
	for name, within := range map[string]func(context.Context, pgx.Tx, func(pgx.Tx) error) error{
		"plainly": func(_ context.Context, tx pgx.Tx, settle func(pgx.Tx) error) error { return settle(tx) },
		"in a savepoint": func(ctx context.Context, tx pgx.Tx, settle func(pgx.Tx) error) error {
			return pgx.BeginFunc(ctx, tx, settle)
		},
	} {
		client := skein.NewClient(store, skein.ClientOptions{})
		for payload := range 3 {
			must(t, queue.Push(t.Context(), client, name, payload))
		}
		var seen [][]int
		errRefused := errors.New("the second payload was refused")
		handler := queue.JobHandler(func(ctx context.Context, job *skein.Job[int]) error {
			seen = append(seen, job.Values())
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				settle := func(payload int) error {
					return within(ctx, tx, func(tx pgx.Tx) error {
						return job.Payloads[payload].SettleIn(ctx, store.Tx(tx))
					})
				}
				if err := settle(0); err != nil || len(seen) > 1 {
					return err
				}
				if err := settle(1); !errors.Is(err, skein.ErrLeaseLost) {
					t.Errorf("%s: the second payload of a transaction: %v, want %v", name, err, skein.ErrLeaseLost)
				}
				return errRefused
			})
		})
		for range 2 {
			_, err := skein.NewServer(store, skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)},
				handler).RunDue(t.Context())
			must(t, err)
		}
		if diff := cmp.Diff([][]int{{0, 1, 2}, {0, 1, 2}}, seen); diff != "" {
			t.Errorf("%s: payloads of the calls (-want +got):\n%s", name, diff)
		}
	}
	stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), queue.Name())
	must(t, err)
	if c := stats[0].Counts; c.Processed != 2 || c.Failed != 2 || c.Length()+c.Claimed != 0 {
		t.Errorf("counts %+v; want 2 processed and 2 failed", c)
	}
}
