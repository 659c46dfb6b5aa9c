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
