package skeintest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/skeintest"
)

// t stands for the *testing.T of a test, and prints the failures.
var t printer

type printer struct{}

func (printer) Helper()                           {}
func (printer) Context() context.Context          { return context.Background() }
func (printer) Output() io.Writer                 { return io.Discard }
func (printer) Errorf(format string, args ...any) { fmt.Printf(format+"\n", args...) }
func (printer) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }

// Two days of retries take no time.
func ExampleStore_Drain() {
	s := skeintest.New()
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{MaxRetries: 3})
	if err := mails.Push(t.Context(), s.Client, "ann", "hello"); err != nil {
		log.Fatal(err)
	}

	events := s.Drain(t, 48*time.Hour, mails.Handler(func(context.Context, string, []string) error {
		return errors.New("mailbox full")
	}))
	fmt.Println(events)
	skeintest.AssertMorgue(t, s, mails, skeintest.Job[string]{ID: "ann", Payloads: []string{"hello"}})
	// Output:
	// 0s mails ann ["hello"] failed: mailbox full
	// 15s mails ann ["hello"] failed: mailbox full
	// 31s mails ann ["hello"] failed: mailbox full
	// 1m2s mails ann ["hello"] exhausted: mailbox full
}

// A payload is buried, another one is done and starts a follow-up job. The calls of OnBuried have
// returned when Drain returns.
func ExampleStore_Drain_each() {
	s := skeintest.New()
	items := skein.NewQueue("items", skein.QueueOptions[int]{Score: func(n int) float64 { return float64(n) }})
	parcels := skein.NewQueue("parcels", skein.QueueOptions[int]{})
	var alerts []string
	s.Server.OnBuried = func(_ context.Context, b skein.Buried) error {
		alerts = append(alerts, fmt.Sprintf("%s: %s: %s", b.ID, b.Reason, b.Error))
		return nil
	}
	for _, n := range []int{1, 0, 2} {
		if err := items.Push(t.Context(), s.Client, "order-1", n); err != nil {
			log.Fatal(err)
		}
	}

	events := s.Drain(t, time.Hour, items.Each(func(ctx context.Context, id string, n int) error {
		if n == 0 {
			return skein.Bury(errors.New("no item 0"))
		}
		return parcels.Then(ctx, s.Client, id, n)
	}))
	fmt.Println(events)
	skeintest.AssertPushed(t, s, parcels, skeintest.Job[int]{ID: "order-1", Payloads: []int{1, 2}})
	fmt.Println(alerts)
	// Output:
	// 0s items order-1 [0 1 2] done: no item 0; buried [0]
	// [order-1: handler: no item 0]
}

// A schedule is fired over a night in which the clock is set forward: 2:30 does not exist on that
// day, so its tick comes when the gap ends.
func ExampleStore_DrainUntil() {
	s := skeintest.New()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		log.Fatal(err)
	}
	s.Advance(time.Date(2026, time.March, 28, 0, 0, 0, 0, berlin).Sub(s.Now()))
	reports := skein.NewQueue("reports", skein.QueueOptions[string]{})
	nightly := skein.Cron("30 2 * * *", "Europe/Berlin")
	if err := reports.Schedule(t.Context(), s.Client, "nightly", nightly, "shop-1", "totals"); err != nil {
		log.Fatal(err)
	}

	end := time.Date(2026, time.March, 31, 0, 0, 0, 0, berlin)
	s.DrainUntil(t, end, reports.Handler(func(_ context.Context, id string, what []string) error {
		fmt.Println(s.Now().In(berlin).Format("2 January 15:04"), id, what)
		return nil
	}))
	fmt.Println(s.Now().Equal(end))
	// Output:
	// 28 March 02:30 shop-1 [totals]
	// 29 March 03:00 shop-1 [totals]
	// 30 March 02:30 shop-1 [totals]
	// true
}

// Each job runs twice, as after a crash. The ledger has each booking once by its key, so it shows that
// the sum is wrong. A handler that adds to the sum only with a new key of the ledger is right.
func ExampleStore_twice() {
	type booking struct{ Number, Amount int }
	bookings := skein.NewQueue("bookings", skein.QueueOptions[booking]{})

	for _, idempotent := range []bool{false, true} {
		s := skeintest.New()
		s.Twice = true
		for n, amount := range []int{5, 5, 7} {
			if err := bookings.Push(t.Context(), s.Client, "account-1", booking{n, amount}); err != nil {
				log.Fatal(err)
			}
		}

		sum, ledger := 0, map[string]int{}
		events := s.Drain(t, time.Hour, bookings.Each(func(_ context.Context, id string, b booking) error {
			key := fmt.Sprint(id, "/", b.Number)
			if _, booked := ledger[key]; !booked || !idempotent {
				sum += b.Amount
			}
			ledger[key] = b.Amount
			return nil
		}))

		want := 0
		for _, amount := range ledger {
			want += amount
		}
		fmt.Printf("%d job done: the sum is %d, and the ledger has %d\n", len(events), sum, want)
	}
	// Output:
	// 1 job done: the sum is 34, and the ledger has 17
	// 1 job done: the sum is 17, and the ledger has 17
}

// A handler is run once, on a job that has failed before.
func ExampleRun() {
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{})
	handler := mails.JobHandler(func(_ context.Context, job *skein.Job[string]) error {
		if job.Retries >= 2 {
			return skein.Bury(errors.New("she has moved"))
		}
		return skein.RetryIn(time.Hour, errors.New("mailbox full"))
	})

	job := skeintest.Job[string]{ID: "ann", Payloads: []string{"hello"}}
	event := skeintest.Run(t, mails, handler, job)
	fmt.Println(event.Outcome, event.Error, "again after", event.Next)

	job.Retries, job.LastError = 2, "mailbox full"
	event = skeintest.Run(t, mails, handler, job)
	fmt.Println(event.Outcome, event.Error)
	// Output:
	// failed mailbox full again after 1h0m0s
	// buried she has moved
}

// The pushes of a piece of a program are compared, and differences are shown line by line.
func ExampleAssertPushed() {
	s := skeintest.New()
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{})
	if err := mails.Push(t.Context(), s.Client, "ann", "hello", skein.In(time.Hour)); err != nil {
		log.Fatal(err)
	}

	skeintest.AssertPushed(t, s, mails, skeintest.Job[string]{ID: "ann", Payloads: []string{"hello"}, In: time.Hour})
	skeintest.AssertPushed(t, s, mails, skeintest.Job[string]{ID: "ann", Payloads: []string{"bye"}})
	// Output:
	// jobs of queue mails (-want +got):
	// - ann ["bye"]
	// + ann ["hello"]
}

// A payload of an earlier version is read by the new one, and another one is not.
func ExampleAssertDecodes() {
	type order struct {
		Number int
		Paid   bool
	}
	orders := skein.NewQueue("orders", skein.QueueOptions[order]{})
	skeintest.AssertDecodes(t, orders,
		`{"Number":7,"Paid":true}`,
		`{"No":7,"Paid":true}`,
	)
	// Output:
	// recorded payload 2 of queue orders, {"No":7,"Paid":true}: the codec loses No; read it, or remove it from the record if nothing needs it
}

// A program's behaviour when the store does not answer.
func ExampleFailingStore() {
	s := skeintest.New()
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{})
	s.Fail(skeintest.Fault{Method: "Push", Times: 1, ReplyLost: true})

	for range 2 {
		fmt.Println(mails.Push(t.Context(), s.Client, "ann", "hello"))
	}
	// It was stored the first time, and merged the second.
	skeintest.AssertPushed(t, s, mails, skeintest.Job[string]{ID: "ann", Payloads: []string{"hello"}})
	// Output:
	// 1 pushed entry is not known to be stored: the store fails on demand
	// <nil>
}
