package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// longestRun keeps the longest run of a batch.
type longestRun struct {
	ports.NopObserver
	took time.Duration
}

func (o *longestRun) BatchEnd(_ context.Context, e ports.BatchEvent) { o.took = max(o.took, e.Took) }

// A lane that has waited for a recovered job to begin takes the time anew for the next batch. The
// time from before would let it start after the end of its lease, and count the wait as work.
func TestALaneTakesTheTimeAnewAfterItHasWaited(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.placeRecoveredIn(100*time.Millisecond, 1, "recovered")
		w.pushEach(200)
		for i := range 200 {
			e := entry(fmt.Sprint("later-", i))
			e.When = core.In(150 * time.Millisecond)
			w.pushEntries(e)
		}
		l := newLink(w.store)
		l.beforeTurn = func(r ports.TurnRequest) {
			if len(r.Begin) > 0 {
				time.Sleep(900 * time.Millisecond)
			}
		}
		o := &longestRun{}
		w.start(each(func(context.Context, *core.Claim) error {
			time.Sleep(time.Millisecond)
			return nil
		}), lanes(1), pooled(1), func(s *setup) {
			s.link = l
			s.Observer = o
		})
		w.sleep(5 * time.Second)
		w.wantCounts(0, 0, 401, 0)
		if o.took > 10*time.Millisecond {
			t.Errorf("a batch of a millisecond took %v", o.took)
		}
	})
}
