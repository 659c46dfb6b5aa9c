package skeintest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/skeintest"
)

// calls notes the calls of handlers, with the number of recoveries.
type calls struct{ list []string }

func (c *calls) note(format string, args ...any) {
	c.list = append(c.list, fmt.Sprintf(format, args...))
}

// With Twice each job runs twice, in each kind of handler, and the events are as without it.
func TestTwiceRunsEachJobTwice(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{MaxRetries: 1, BatchSize: 2, Backoff: every(time.Minute)})
	bad := errors.New("no y")

	handlers := map[string]func(c *calls) skein.Handler{
		"Handler": func(c *calls) skein.Handler {
			return q.Handler(func(_ context.Context, id string, payloads [][]byte) error {
				c.note("%s %s", id, payloads)
				if string(payloads[0]) == "y" {
					return bad
				}
				return nil
			})
		},
		"JobHandler": func(c *calls) skein.Handler {
			return q.JobHandler(func(_ context.Context, job *skein.Job[[]byte]) error {
				c.note("%s %s", job.ID, job.Values())
				if string(job.Payloads[0].Value) == "y" {
					return bad
				}
				return nil
			})
		},
		"BatchHandler": func(c *calls) skein.Handler {
			return q.BatchHandler(func(_ context.Context, batch *skein.Batch[[]byte]) error {
				for _, job := range batch.Jobs() {
					c.note("%s %s", job.ID, job.Values())
					if string(job.Payloads[0].Value) == "y" {
						job.Settle(bad)
					}
				}
				return nil
			})
		},
		"Each": func(c *calls) skein.Handler {
			return q.Each(func(_ context.Context, id string, payload []byte) error {
				c.note("%s [%s]", id, payload)
				if string(payload) == "y" {
					return bad
				}
				return nil
			})
		},
	}

	for name, handler := range handlers {
		t.Run(name, func(t *testing.T) {
			once, twice := new(calls), new(calls)
			var events [2]skeintest.Events
			for i, c := range []*calls{once, twice} {
				s := skeintest.New()
				s.Twice = c == twice
				push(t, s, q, "a", "x", "z")
				push(t, s, q, "b", "y", "z")
				events[i] = s.Drain(t, time.Hour, handler(c))
			}

			if d := cmp.Diff(events[0], events[1]); d != "" {
				t.Errorf("the events differ (-once +twice):\n%s", d)
			}
			if got, want := counted(twice.list), doubled(counted(once.list)); !cmp.Equal(got, want) {
				t.Errorf("the calls differ (-want +got):\n%s", cmp.Diff(want, got))
			}
		})
	}
}

func counted(calls []string) map[string]int {
	counts := make(map[string]int)
	for _, call := range calls {
		counts[call]++
	}
	return counts
}

func doubled(counts map[string]int) map[string]int {
	for call := range counts {
		counts[call] *= 2
	}
	return counts
}

// The second run is one after a crash.
func TestTwiceIsACrash(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{})
	s := skeintest.New()
	s.Twice = true
	push(t, s, q, "id", "p")

	var recoveries []int
	var tokens []int64
	skeintest.AssertEvents(t, s.Drain(t, time.Hour, q.JobHandler(func(ctx context.Context, job *skein.Job[[]byte]) error {
		token, _ := skein.Fence(ctx)
		recoveries, tokens = append(recoveries, job.Recoveries), append(tokens, token)
		if len(tokens) <= 2 {
			return skein.Snooze(time.Minute)
		}
		return nil
	})), "0s q id [p] snoozed", "1m0s q id [p] done")

	if want := []int{0, 1, 0, 1}; !cmp.Equal(recoveries, want) {
		t.Errorf("recoveries %v, want %v", recoveries, want)
	}
	for i := 1; i < len(tokens); i++ {
		if tokens[i] < tokens[i-1] || i%2 == 1 && tokens[i] == tokens[i-1] {
			t.Errorf("fencing tokens %v do not rise", tokens)
		}
	}
}

// What a handler settles in a transaction does not run again; payloads that it does not settle do.
func TestTwiceKeepsTransactions(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{})
	s, c := skeintest.New(), new(calls)
	s.Twice = true
	push(t, s, q, "whole", "x")
	push(t, s, q, "part", "x", "y")

	events := s.Drain(t, time.Hour, q.JobHandler(func(ctx context.Context, job *skein.Job[[]byte]) error {
		c.note("%s %s", job.ID, job.Values())
		if job.ID == "whole" {
			return skein.SettleIn(ctx, s)
		}
		if string(job.Payloads[0].Value) == "x" {
			return job.Payloads[0].SettleIn(ctx, s)
		}
		return nil
	}))
	if len(events) != 2 || len(events.Of("part")) != 1 || len(events.Of("whole")) != 1 {
		t.Errorf("events:\n%v", events)
	}
	if want := map[string]int{"whole [x]": 1, "part [x y]": 1, "part [y]": 1}; !cmp.Equal(counted(c.list), want) {
		t.Errorf("calls %q, want %v", c.list, want)
	}
}

// A handler without a ledger has its effects twice, and a push after a job merges.
func TestTwiceShowsEffects(t *testing.T) {
	q, follow := plain("q", skein.QueueOptions[[]byte]{}), plain("follow", skein.QueueOptions[[]byte]{})
	s := skeintest.New()
	s.Twice = true
	push(t, s, q, "id", "p", "r")

	balance, ledger := 0, make(map[string]bool)
	events := s.Drain(t, time.Hour, q.Each(func(ctx context.Context, id string, payload []byte) error {
		balance++
		ledger[string(payload)] = true
		return follow.Then(ctx, s.Client, id, payload)
	}))
	skeintest.AssertEvents(t, events, "0s q id [p r] done")
	if balance != 4 || len(ledger) != 2 {
		t.Errorf("balance %d, ledger %v", balance, ledger)
	}
	skeintest.AssertPushed(t, s, follow, skeintest.Job[[]byte]{ID: "id", Payloads: [][]byte{[]byte("p"), []byte("r")}})
}

// A queue that allows no recovery has its jobs in the morgue after the crash.
func TestTwiceOfAQueueWithoutRecoveries(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{MaxRecoveries: skein.NoRetries})
	s := skeintest.New()
	s.Twice = true
	push(t, s, q, "id", "p")
	skeintest.AssertEvents(t, s.Drain(t, time.Hour, always(q, nil)))
	skeintest.AssertMorgue(t, s, q, skeintest.Job[[]byte]{ID: "id", Payloads: [][]byte{[]byte("p")}})
}

// A drain with Twice ends, with an error of the store and with a rate too.
func TestADrainWithTwiceEnds(t *testing.T) {
	q := plain("q", skein.QueueOptions[[]byte]{Rate: core.Rate{Count: 1, Per: time.Minute}})
	s, f := skeintest.New(), newFake(t)
	s.Twice, s.MaxJobs = true, 20
	push(t, s, q, "id", "p")
	s.Drain(f, 24*time.Hour, always(q, skein.Snooze(0)))
	if len(f.fatals) != 1 {
		t.Errorf("the test failed with %q", f.fatals)
	}

	s, f = skeintest.New(), newFake(t)
	s.Twice = true
	push(t, s, q, "id", "p")
	s.Fail(skeintest.Fault{Method: "Turn", After: 1, Times: 1})
	s.Drain(f, time.Hour, always(q, nil))
	if len(f.fatals) != 1 {
		t.Errorf("the test failed with %q", f.fatals)
	}
}
