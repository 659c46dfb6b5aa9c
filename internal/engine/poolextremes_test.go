package engine_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// Jobs go back after a poll interval, so with a short one fewer are claimed ahead.
func TestAShortPollIntervalSendsNoJobsBack(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{10 * time.Millisecond, 30 * time.Millisecond, poll} {
		t.Run(every.String(), func(t *testing.T) {
			inWorld(t, func(w *world) {
				const lanes, length, span = 10, 4 * time.Millisecond, 2 * time.Second
				w.fill(queueName, 2, int(2*span/length)*lanes)
				n := w.start(each(lasting(length)), shards(2), pooled(lanes), roundTrip(2*time.Millisecond),
					polling(every))
				w.sleep(span)
				back := 0
				for _, turn := range n.link.turnsSent() {
					for i := range turn.request.Settlements {
						if !turn.request.Settlements[i].Processed {
							back++
						}
					}
				}
				ideal := int(span/length) * lanes
				if done := int(w.stats().Processed); done < ideal*9/10 || back > ideal/20 {
					w.Errorf("%d jobs are done, want %d, and %d went back", done, ideal, back)
				}
			})
		})
	}
}

// declining is a scheduler of heads that will not have claimed jobs run.
type declining struct{ core.HeadScheduler }

func (declining) Choose(core.Instant) core.Choice { return core.Choice{Index: -1} }

func TestLanesDoNotSpinWhenASchedulerDeclinesWhatIsClaimed(t *testing.T) {
	inWorld(t, func(w *world) {
		built := 0
		w.fill(queueName, 1, 10)
		w.start(each(succeed), pooled(4), roundTrip(2*time.Millisecond),
			scheduled(func(c core.SchedulerConfig) core.Scheduler {
				if built++; built == 2 { // the one that chooses the next to run
					return declining{core.Lag(c).(core.HeadScheduler)}
				}
				return core.Lag(c)
			}))
		w.sleep(10 * poll)
		if s := w.stats(); s.Processed != 0 || s.Fresh+s.Claimed != 10 {
			w.Errorf("%+v; want 10 jobs left", s)
		}
	})
}
