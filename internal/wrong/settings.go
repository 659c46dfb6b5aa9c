package wrong

import (
	"slices"
	"time"

	"github.com/skeinq/skein/inspect"
)

// followTime is the least time that servers have to follow changed settings.
const followTime = 10 * time.Second

// settings adds a line if the settings of a queue can't be read, or if running servers have not
// followed the last change for two announce intervals.
func (r *rules) settings(s *inspect.QueueStats) {
	stored := &s.Queue.Settings
	if stored.Broken {
		r.of(BrokenSettings, s, 1, time.Time{},
			"The settings that operators have set can't be read: servers continue with those that they have read, "+
				"and a server that starts uses its code: set one of them again, which replaces all")
		return
	}
	if stored.Version == 0 {
		return
	}

	changed := stored.At.Time()
	var behind []string
	for at := range r.Nodes {
		n := &r.Nodes[at]
		if n.State == inspect.NodeGone {
			continue
		}
		// A server announces itself when two to three intervals remain, so that two of them have passed
		// if the change is older than what remains.
		if r.Now.Sub(changed) <= max(followTime, n.ExpiresAt.Sub(r.Now)) {
			continue
		}
		for i := range n.Status.Queues {
			if q := &n.Status.Queues[i]; q.Queue == s.Queue.Name && q.SettingsVersion != stored.Version {
				behind = append(behind, n.Name)
			}
		}
	}
	if len(behind) == 0 {
		return
	}

	follow := "does"
	if len(behind) > 1 {
		follow = "do"
	}
	slices.Sort(behind)
	r.of(NotFollowed, s, int64(len(behind)), changed,
		"Settings were changed, and %s %s not follow: its log has the reason, or its program is older than settings",
		someOf(behind), follow)
}
