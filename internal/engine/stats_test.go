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

// history is the sum of the queue's minutes.
func (w *world) history() (sum core.Stats) {
	w.Helper()
	minutes, err := w.store.History(w.Context(), ports.HistoryRequest{Queue: queueName})
	if err != nil {
		w.Fatal(err)
	}
	for i := range minutes {
		sum.Add(&minutes[i].Stats)
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
		w.start(each(func(_ context.Context, c *core.Claim) error {
			time.Sleep(100 * time.Millisecond)
			if c.ID == "job-3" && c.Fresh() {
				return errors.New("no")
			}
			return nil
		}))
		w.sleep(poll)
		w.pushEach(10) // the last of them waits for 900 ms
		w.sleep(3 * poll)
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

func TestStatisticsGoAlongAtMostOnceASecond(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		n := w.start(each(succeed))
		for range 100 {
			w.push("job", "x")
			w.sleep(100 * time.Millisecond)
		}
		sent := 0
		for _, turn := range n.link.turnsSent() {
			if turn.request.Stats != nil {
				sent++
			}
		}
		if sent < 9 || sent > 11 {
			w.Errorf("statistics were sent %d times in 10 s", sent)
		}
		w.sleep(2 * poll)
		if got := w.minute(0); got.Processed != 100 {
			w.Errorf("processed %d, want 100", got.Processed)
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

// minute is what was counted in a minute of the test.
func (w *world) minute(number int) ports.MinuteStats {
	w.Helper()
	minutes, err := w.store.History(context.Background(), ports.HistoryRequest{Queue: queueName})
	if err != nil || len(minutes) <= number {
		w.Fatalf("History = %+v, %v", minutes, err)
	}
	return minutes[number]
}
