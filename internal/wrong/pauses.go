package wrong

import (
	"iter"

	"github.com/skeinq/skein/inspect"
)

// PausesOf returns the actions that paused the queues that are paused now, by queue. actions is the
// audit, the newest action first. It is read until all are known. A pause that the audit has
// dropped, or that was not made by an Inspector, is missing.
func PausesOf(stats []inspect.QueueStats, actions iter.Seq2[inspect.Action, error]) (map[string]inspect.Action, error) {
	paused := map[string]bool{}
	for at := range stats {
		if stats[at].Queue.Paused {
			paused[stats[at].Queue.Name] = true
		}
	}
	if len(paused) == 0 {
		return nil, nil
	}

	found := map[string]inspect.Action{}
	for a, err := range actions {
		if err != nil {
			return found, err
		}
		if !paused[a.Queue] || a.Error != "" {
			continue
		}
		switch a.Verb {
		case "pause":
			found[a.Queue] = a // an older pause replaces it, unless the queue was resumed between them
		case "resume", "forget":
			if delete(paused, a.Queue); len(paused) == 0 {
				return found, nil
			}
		}
	}
	return found, nil
}

// pausedBy describes who paused a queue, and why, as far as the audit has it: "Paused by ann: “the
// bank is closed”".
func (r *rules) pausedBy(queue string) string {
	text := "Paused"
	a := r.Pauses[queue]
	if a.Actor.Name != "" {
		text += " by " + a.Actor.Name
	}
	if a.Actor.Reason != "" {
		text += ": “" + a.Actor.Reason + "”"
	}
	return text
}
