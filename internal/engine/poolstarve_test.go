package engine_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
)

// A queue may have no jobs claimed ahead of free lanes, since few lanes may run it and it is not
// known how many jobs those start. It gets its turn all the same while another queue keeps each
// lane busy.
func TestABoundedQueueStartsWhileAnotherKeepsAllLanesBusy(t *testing.T) {
	t.Parallel()
	bounds := map[string]func(*engine.Queue){
		"Parallel": func(q *engine.Queue) { q.Parallel = 1 },
		"MaxLanes": func(q *engine.Queue) { q.MaxLanes = 1 },
	}
	schedulers := map[string]core.SchedulerFunc{
		"seq": core.Seq, "strict": core.StrictBy("bounded", "busy"), "weighted": core.WeightedBy(nil),
	}

	for bound, set := range bounds {
		for name, scheduler := range schedulers {
			t.Run(bound+", "+name, func(t *testing.T) {
				inWorld(t, func(w *world) {
					const lanes, length, span = 10, 5 * time.Millisecond, 2 * time.Second
					r := w.record()
					bounded := r.queue("bounded", 1, lasting(100*time.Millisecond))
					set(bounded)

					w.fill("busy", 1, int(2*span/length)*lanes)
					w.start(nil, serving(r.queue("busy", 1, lasting(length)), bounded), pooled(lanes),
						roundTrip(2*time.Millisecond), scheduled(scheduler))

					w.sleep(span)
					w.fill("bounded", 1, 5)
					w.sleep(span / 2)

					starts := r.of("bounded")
					if len(starts) != 5 {
						w.Fatalf("%d of 5 jobs have started at %v", len(starts), w.elapsed())
					}
					w.within("the first job started", starts[0].at, span, span+50*time.Millisecond)
				})
			})
		}
	}
}
