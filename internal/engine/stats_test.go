package engine_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// history is the sum of the queue's minutes, once the nodes have sent their counts.
func (w *world) history() (sum core.Stats) {
	w.Helper()
	w.sleep(ttl/3 + time.Second)
	history, err := w.store.History(w.Context(), ports.HistoryRequest{Queue: queueName})
	if err != nil {
		w.Fatal(err)
	}
	for i := range history.Minutes {
		sum.Add(&history.Minutes[i].Stats)
	}
	return sum
}

// observed is a histogram of durations.
func observed(durations ...time.Duration) (h core.Histogram) {
	for _, d := range durations {
		h.Observe(d)
	}
	return h
}

func TestHistoryCountsJobsWithTheirWaitAndRunTimes(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(func(_ context.Context, c *core.Claim) error {
			time.Sleep(100 * time.Millisecond)
			if c.ID == "job-3" && c.Fresh() {
				return errors.New("no")
			}
			return nil
		}))

		w.sleep(poll)
		w.pushEach(10) // the last of them waits for 900 ms
		w.sleep(3 * poll)
		n.stop()

		got := w.minute(0)
		if got.Processed != 9 || got.Failed != 1 {
			w.Errorf("processed %d, failed %d; want 9 and 1", got.Processed, got.Failed)
		}

		var wait, run core.Histogram
		for i := range 10 {
			wait.Observe(time.Duration(i) * 100 * time.Millisecond)
			run.Observe(100 * time.Millisecond)
		}

		if diff := cmp.Diff(wait, got.Wait); diff != "" {
			w.Errorf("waits (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(run, got.Run); diff != "" {
			w.Errorf("runs (-want +got):\n%s", diff)
		}
	})
}

func TestStatisticsAreSentAsOftenAsTheNodeAnnouncesItself(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(each(succeed))
		for range 100 {
			w.push("job", "x")
			w.sleep(100 * time.Millisecond)
		}
		if sent, most := n.link.count("Record"), int(10*time.Second/(ttl/3)); sent < 1 || sent > most {
			w.Errorf("statistics were sent %d times in 10 s, want 1 to %d", sent, most)
		}
		w.sleep(ttl)
		if got := w.minute(0); got.Processed != 100 {
			w.Errorf("processed %d, want 100", got.Processed)
		}
		before := n.link.count("Record")
		w.sleep(10 * ttl)
		if n.link.count("Record") != before {
			w.Errorf("an idle node has sent statistics")
		}
	})
}

func TestStatisticsAreSentBeforeTheNodeEnds(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		w.push("job-0", "x")
		w.push("job-1", "x")
		n.stop()
		if got := w.minute(0); got.Processed != 2 {
			w.Errorf("processed %d, want 2", got.Processed)
		}
	})
}

// Counts that were made while the store could not be reached, or when the reply was lost, are sent
// again and counted once, each in its minute.
func TestStatisticsOutliveAnOutageAndCountOnce(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(each(succeed), func(s *setup) {
			s.link.lose = func(call string) bool { return call == "Record" }
		})
		for range 3 {
			w.sleep(poll)
			w.push("job", "x")
			w.sleep(time.Minute - poll)
		}
		n.link.change(func() { n.link.lose = func(string) bool { return false } })
		w.sleep(2 * ttl)
		for number := range 3 {
			if got := w.minute(number); got.Processed != 1 {
				w.Errorf("minute %d has %d jobs, want 1", number, got.Processed)
			}
		}
		if got := w.history().Processed; got != 3 {
			w.Errorf("%d jobs are counted, want 3; the log:\n%v", got, n.log)
		}
	})
}

// minute is the counts of a minute of the test.
func (w *world) minute(number int) ports.MinuteStats {
	w.Helper()
	history, err := w.store.History(context.Background(), ports.HistoryRequest{Queue: queueName})
	if err != nil || len(history.Minutes) <= number {
		w.Fatalf("History = %+v, %v", history, err)
	}
	return history.Minutes[number]
}
