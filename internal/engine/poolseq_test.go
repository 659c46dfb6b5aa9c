package engine_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// A lane that works one job after another, all of which succeed, never pauses.
func TestSeqDoesNotPauseWhileJobsSucceed(t *testing.T) {
	for name, options := range map[string][]func(*setup){
		"one lane, one shard":          {lanes(1)},
		"one lane, five shards":        {lanes(1), shards(5)},
		"pinned lanes":                 {lanes(5), shards(5)},
		"without prefetch":             {lanes(1), shards(5), func(s *setup) { s.Prefetch = 0 }},
		"three lanes that share five":  {shards(5), pooled(3)},
		"more lanes than there is for": {shards(2), pooled(20)},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				const jobs, length = 200, 100 * time.Millisecond
				w.start(each(lasting(length)), append(options, roundTrip(time.Millisecond), func(s *setup) {
					s.Scheduler = core.Seq
				})...)
				w.sleepUntil(2*poll + poll/2)
				w.pushEach(jobs)
				start := w.elapsed()
				for w.stats().Processed < jobs && w.elapsed() < start+2*jobs*length {
					w.sleep(length)
				}
				// It is not seen before the pause that is under way has ended.
				if took, most := w.elapsed()-start, poll+jobs*(length+2*time.Millisecond)+length; took > most {
					w.Errorf("%d jobs took %v, want at most %v", jobs, took, most)
				}
			})
		})
	}
}
