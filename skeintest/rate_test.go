package skeintest_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/skeintest"
)

// Drain moves the clock to the next start that the rate of a queue allows, and another queue does not
// wait for it.
func TestDrainHoldsTheRateOfAQueue(t *testing.T) {
	s := skeintest.New()
	mails := skein.NewQueue("mails", skein.QueueOptions[string]{
		Shards: 2, Rate: skein.Rate{Count: 1, Per: time.Minute, Burst: 1},
	})
	orders := skein.NewQueue("orders", skein.QueueOptions[string]{Shards: 1})
	for _, id := range []string{"a", "b", "c", "d"} {
		if err := mails.Push(t.Context(), s.Client, id, "x"); err != nil {
			t.Fatal(err)
		}
	}
	if err := orders.Push(t.Context(), s.Client, "a", "x", skein.In(90*time.Second)); err != nil {
		t.Fatal(err)
	}

	done := func(context.Context, *skein.Job[string]) error { return nil }
	var got []time.Duration
	for _, e := range s.Drain(t, 10*time.Minute, mails.JobHandler(done), orders.JobHandler(done)) {
		got = append(got, e.At)
	}
	want := []time.Duration{0, 0, time.Minute, 90 * time.Second, 2 * time.Minute}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("jobs start at (-want +got):\n%s", diff)
	}
}

// The rates of a queue whose handler slows it down are stopped, and so its other jobs wait too.
func TestDrainShowsSlowDown(t *testing.T) {
	s := skeintest.New()
	q := skein.NewQueue("mails", skein.QueueOptions[string]{Shards: 1, Rate: skein.Rate{Count: 10, Per: time.Second, Burst: 9}})
	for _, id := range []string{"a", "b"} {
		if err := q.Push(t.Context(), s.Client, id, "x"); err != nil {
			t.Fatal(err)
		}
	}

	slowed := false
	events := s.Drain(t, time.Hour, q.JobHandler(func(context.Context, *skein.Job[string]) error {
		if !slowed {
			slowed = true
			return skein.SlowDown(5 * time.Minute)
		}
		return nil
	}))
	var got []string
	for _, e := range events {
		got = append(got, e.String())
	}
	want := []string{
		`0s mails a ["x"] snoozed`,
		`5m0s mails b ["x"] done`,
		`5m0.1s mails a ["x"] done`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}
