package engine_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// runDue calls RunDue of a server of one queue, over a link.
func (w *world) runDue(l *link, q *engine.Queue, owner string) (jobs int, err error) {
	l.spin.t = w.T
	return engine.New(l, engine.Config{
		Queues: []*engine.Queue{q}, Owner: owner, Node: "node", Lanes: 1, PollInterval: poll, LeaseTTL: ttl,
		ShutdownTimeout: ttl, Prefetch: core.MaxTurnJobs, Splitter: core.SpreadSplitter{}, Scheduler: core.Lag,
		Logger: slog.New(slog.DiscardHandler), Jitter: func() int { return 0 },
	}).RunDue(w.Context())
}

// RunDue continues with the waiting jobs when another owner has settled the job that it is about
// to run.
func TestRunDueGoesOnAfterAJobThatDoesNotBegin(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecovered(1, "a", "b", "c")
		w.push("d", "x")
		var ran []string
		s := &setup{
			link: newLink(w.store.Open()),
			queue: newQueue(queueName, each(func(_ context.Context, c *core.Claim) error {
				ran = append(ran, c.ID)
				return nil
			})),
		}
		onFirstBegin(func(r ports.TurnRequest) { w.settleElsewhere(r.Begin[0], r.Lease.Shard) })(s)
		jobs, err := w.runDue(s.link, s.queue, "owner")
		slices.Sort(ran)
		if diff := cmp.Diff([]string{"b", "c", "d"}, ran); jobs != 3 || err != nil || diff != "" {
			w.Errorf("RunDue: %d jobs, %v; what ran (-want +got):\n%s", jobs, err, diff)
		}
	})
}

// RunDue's counts are sent when it is done, and a second run adds to them.
func TestRunDueSendsWhatItHasCounted(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		for _, owner := range []string{"first", "second"} {
			w.push(owner, "x")
			if _, err := w.runDue(newLink(w.store.Open()), newQueue(queueName, each(succeed)), owner); err != nil {
				w.Fatal(err)
			}
		}
		if got := w.minute(0); got.Processed != 2 || got.Run.Count() != 2 {
			w.Errorf("%d jobs are counted, %d times; want 2 and 2", got.Processed, got.Run.Count())
		}
	})
}
