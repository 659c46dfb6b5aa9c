package engine_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
)

// A node that is dead does not seem to run for longer since the store's clock has stepped back,
// not even to one that starts after that.
func TestADeadNodesShardsAreTakenThoughTheClockStepsBack(t *testing.T) {
	for name, startsLate := range map[string]bool{"by a node that runs": false, "by a node that starts": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				clock := &jumpingClock{}
				w.store = memory.New(memory.Options{Clock: clock.now})
				start := func() *node { return w.start(each(succeed), spread, shards(8)) }
				var stays *node
				if !startsLate {
					stays = start()
				}
				dies := start()
				w.sleep(3 * memberTTL)
				dies.cutOff()
				clock.ahead.Add(-int64(time.Hour))
				if startsLate {
					stays = start()
				}
				w.sleep(memberTTL + 2*announceInterval + maxHeldPause)
				w.wantOwners(even(8, stays))
			})
		})
	}
}
