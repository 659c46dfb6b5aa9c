package env

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// WakeupTimeout is the maximum real time that a wake-up may take, also on a busy machine.
const WakeupTimeout = 3 * time.Minute

// Wakeups subscribes to the shards' wake-ups until the case ends.
func (e *Env) Wakeups(shards ...core.Shard) <-chan core.Shard {
	e.TB.Helper()
	ch, err := e.Store.(ports.Notifier).Wakeups(e.Ctx, shards)
	e.Must(err, "Wakeups")
	return ch
}

// Wakes checks that a wake-up for the shard arrives, and then drains the channel.
func (e *Env) Wakes(what string, ch <-chan core.Shard, want core.Shard) {
	e.TB.Helper()
	e.WokenUntil(what, ch, want)
	Drain(ch)
}

// WokenUntil checks that a wake-up for the shard arrives, and returns the shards of earlier
// wake-ups.
func (e *Env) WokenUntil(what string, ch <-chan core.Shard, want core.Shard) (before []core.Shard) {
	e.TB.Helper()
	timeout := time.After(WakeupTimeout)
	for {
		select {
		case s, ok := <-ch:
			if !ok {
				e.Errorf("%s: the channel was closed", what)
				return before
			}
			if s == want {
				return before
			}
			before = append(before, s)
		case <-timeout:
			e.Errorf("%s: no wake-up of %v within %v", what, want, WakeupTimeout)
			return before
		}
	}
}

// Drain empties a channel of wake-ups.
func Drain(ch <-chan core.Shard) {
	for {
		select {
		case _, ok := <-ch:
			if !ok {
				return
			}
		default:
			return
		}
	}
}
