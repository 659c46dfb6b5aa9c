package engine_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// A shard that was never a node's is idle there, so a round of Seq ends without it: a job that
// fails at each of its runs runs once per poll interval.
func TestSeqEndsItsRoundsOnANodeThatHasOnlySomeShards(t *testing.T) {
	inWorld(t, func(w *world) {
		var runs atomic.Int64
		failing := each(func(context.Context, *core.Claim) error {
			runs.Add(1)
			return errors.New("not yet")
		})
		seq := func(s *setup) {
			s.Scheduler = core.Seq
			s.queue.Policy.MaxRetries = 1e6
			s.queue.Policy.Backoff = func(int, int) time.Duration { return 0 }
		}
		for range 2 {
			w.start(failing, spread, shards(8), seq, noWakeups, roundTrip(time.Millisecond))
			w.sleep(2 * memberTTL)
		}
		for i := range 8 {
			before := runs.Load()
			w.push(idIn(i, 8), "x")
			w.sleep(10 * poll)
			if got, most := runs.Load()-before, int64(i+1)*12; got > most {
				w.Errorf("%d jobs that fail ran %d times in 10 poll intervals, want at most %d", i+1, got, most)
			}
		}
	})
}
