package shop

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein"
)

// event is what happened to an entity.
type event struct {
	Number int    `json:"number"`
	What   string `json:"what"`
	Cents  int    `json:"cents,omitempty"`
}

// The ids with a trouble of their own.
const (
	hotOrder      = "order-1001"     // gets a push each second
	declinedOrder = "order-970"      // fails always, and has one retry left
	stuckSearch   = "catalog-all"    // never ends, so the other jobs of its shard wait
	stuckExport   = "export-2026-q3" // never ends, and is the only job that may run
)

// queues are the shop's, each with its own trouble.
type queues struct {
	orders     *skein.Queue[event] // merged, some fail and are retried, one id is hot, one at its last retry
	emails     *skein.Queue[event] // some fail always, and go to the morgue; the others leave a record
	search     *skein.Queue[event] // many shards, one of them blocked by a job that never ends
	thumbnails *skein.Queue[event] // more jobs are pushed than the servers can run
	exports    *skein.Queue[event] // served, but nothing moves
	invoices   *skein.Queue[event] // paused
	reports    *skein.Queue[event] // no server runs it
}

func newQueues() *queues {
	score := func(e event) float64 { return float64(e.Number) }
	return &queues{
		orders: skein.NewQueue("orders", skein.QueueOptions[event]{Shards: 16, Score: score, IndexIDs: true}),
		emails: skein.NewQueue("emails", skein.QueueOptions[event]{
			Shards:     8,
			Score:      score,
			MaxRetries: 2,
			Backoff:    soon,
			Keep:       skein.Keep{Age: 24 * time.Hour, Count: 10_000},
		}),
		search:     skein.NewQueue("search", skein.QueueOptions[event]{Shards: 128, Score: score, Parallel: 1}),
		thumbnails: skein.NewQueue("thumbnails", skein.QueueOptions[event]{Shards: 8, Score: score, MaxLanes: 1}),
		// One shard, so that the job that never ends is the first.
		exports:  skein.NewQueue("exports", skein.QueueOptions[event]{Shards: 1, Score: score, MaxRunning: 1}),
		invoices: skein.NewQueue("invoices", skein.QueueOptions[event]{Shards: 4, Score: score}),
		reports:  skein.NewQueue("reports", skein.QueueOptions[event]{Shards: 4, Score: score}),
	}
}

// schedule stores the shop's schedules.
func (q *queues) schedule(ctx context.Context, client *skein.Client) error {
	refresh, closing := event{What: "refreshed"}, event{What: "closed"}
	return errors.Join(
		q.search.Schedule(ctx, client, "refresh", skein.Interval(time.Minute), "catalog-new", refresh),
		q.orders.Schedule(ctx, client, "ledger-close", skein.Cron("55 23 * * *", "Europe/Madrid"),
			"ledger", closing, skein.Skip()),
	)
}

// soon is a short backoff, for demonstrations.
func soon(retry int) time.Duration { return time.Duration(10*(retry+1)) * time.Second }

// handlers returns the handlers of the served queues. If takesTime is false, the handlers return at
// once, no job of search is stuck, and exports and invoices have no handler.
func (q *queues) handlers(takesTime bool) []skein.Handler {
	work := func(least, most time.Duration, fails func(id string) error) func(context.Context, string, []event) error {
		return func(ctx context.Context, id string, _ []event) error {
			if takesTime {
				if err := sleep(ctx, least+rand.N(most-least)); err != nil {
					return err
				}
			}
			return fails(id)
		}
	}

	handlers := []skein.Handler{
		q.orders.Handler(work(5*time.Millisecond, 45*time.Millisecond, orderFails)),
		q.emails.Handler(sent(work(20*time.Millisecond, 90*time.Millisecond, emailFails))),
		q.search.Handler(work(2*time.Millisecond, 12*time.Millisecond, never)),
		// 100 a minute on three servers; 120 a minute are pushed.
		q.thumbnails.Handler(work(1400*time.Millisecond, 2200*time.Millisecond, never)),
	}

	if !takesTime {
		return handlers
	}

	handlers[2] = q.search.Handler(func(ctx context.Context, id string, _ []event) error {
		if id == stuckSearch {
			return forever(ctx)
		}
		return sleep(ctx, 2*time.Millisecond+rand.N(10*time.Millisecond))
	})

	return append(handlers,
		q.exports.Handler(func(ctx context.Context, _ string, _ []event) error { return forever(ctx) }),
		q.invoices.Handler(work(50*time.Millisecond, 90*time.Millisecond, never)))
}

// sent returns a handler that sets the result of a mail which send has sent.
func sent(send func(context.Context, string, []event) error) func(context.Context, string, []event) error {
	return func(ctx context.Context, id string, events []event) error {
		if err := send(ctx, id, events); err != nil {
			return err
		}
		return skein.SetResult(ctx, map[string]any{
			"message": fmt.Sprintf("<%08x@mail.example.com>", rand.Uint32()),
			"orders":  len(events),
		})
	}
}

// sleep waits for d. If ctx ends first, it returns the cause.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// forever waits until ctx ends.
func forever(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

func never(string) error { return nil }

// orderFails lets one order in 97 fail always, and 3 of 100 executions of the others at random.
func orderFails(id string) error {
	if n, err := strconv.Atoi(strings.TrimPrefix(id, "order-")); err == nil && n%97 == 0 {
		return fmt.Errorf("payment gateway: card of %s declined: do_not_honor", id)
	}
	switch rand.IntN(100) {
	case 0, 1:
		return fmt.Errorf("payment gateway: POST https://pay.example/charges/%d: 503 Service Unavailable",
			rand.IntN(1e6))
	case 2:
		return fmt.Errorf("reserve stock for %s: %w", id, context.DeadlineExceeded)
	}
	return nil
}

// emailFails lets the mail of one recipient in four fail, always.
func emailFails(id string) error {
	h := fnv.New32a()
	_, _ = h.Write([]byte(id))
	switch h.Sum32() % 16 {
	case 0, 1, 2:
		return fmt.Errorf("smtp: 550 5.1.1 %q: no such mailbox",
			strings.Replace(id, "customer-", "c", 1)+"@example.com")
	case 3:
		return errors.New("render template order_shipped.html: map has no entry for key \"TrackingURL\"")
	}
	return nil
}
