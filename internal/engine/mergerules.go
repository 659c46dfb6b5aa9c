package engine

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// rulesEach is how often a server compares its merge rules with those of the queues.
const rulesEach = time.Minute

// watchRules logs that the merge rule of a queue is no longer the one that this program has, until
// stop is closed. An operator can change it. The server and the clients that have declared the
// queue continue by its new rule, but each new declaration is refused. It logs each difference
// once.
func (e *Engine) watchRules(stop <-chan struct{}) {
	logged := make(map[string]core.MergeRule)
	for pause(rulesEach, stop) {
		ctx, cancel := e.callContext()
		queues, err := e.store.Queues(ctx)
		cancel()
		if err != nil {
			continue // the outage is logged by other loops
		}

		for _, q := range e.served.Load().queues {
			at := slices.IndexFunc(queues, func(stored ports.Queue) bool { return stored.Name == q.Name })
			if at >= 0 {
				e.compareRule(q, queues[at].Merge, logged)
			}
		}
	}
}

// compareRule logs that the stored rule of a queue differs from this program's, unless logged, the
// rules that were logged by queue, has it.
func (e *Engine) compareRule(q *Queue, rule core.MergeRule, logged map[string]core.MergeRule) {
	if rule == q.Merge {
		delete(logged, q.Name)
		return
	}
	if known, differs := logged[q.Name]; differs && known == rule {
		return
	}

	logged[q.Name] = rule
	e.log.Warn("the merge rule of a queue was changed: deploy this program with the queue's rule; "+
		"until then it continues by that rule, but its next start and its new clients are refused",
		"queue", q.Name, "rule", rule.String(), "own", q.Merge.String())
}
