package ports

import (
	"testing"

	"github.com/skeinq/skein/core"
)

func TestPendingIsSettledAndStopped(t *testing.T) {
	for name, test := range map[string]struct {
		of                       Pending
		before, at, all, stopped bool
	}{
		"nothing":          {before: true, at: true, all: true},
		"dead":             {of: Pending{Dead: true}, before: true, at: true, all: true},
		"queued":           {of: Pending{Queued: true, FirstPush: 10}, before: true},
		"claimed":          {of: Pending{Claimed: true, FirstPush: 10}, before: true},
		"both":             {of: Pending{Queued: true, Claimed: true, FirstPush: 10}, before: true},
		"held":             {of: Pending{Queued: true, Held: true, FirstPush: 10}, before: true, stopped: true},
		"held and claimed": {of: Pending{Queued: true, Claimed: true, Held: true, FirstPush: 10}, before: true},
		"damaged":          {of: Pending{Damaged: true}},
	} {
		p := test.of
		if p.Settled(9) != test.before || p.Settled(10) != test.at || p.Settled(core.MaxInstant) != test.all ||
			p.Stopped() != test.stopped {
			t.Errorf("%s: settled before its push %v, at it %v and at the end %v, stopped %v; want %+v", name,
				p.Settled(9), p.Settled(10), p.Settled(core.MaxInstant), p.Stopped(), test)
		}
	}
}
