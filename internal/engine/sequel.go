package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// sequel is what follows a batch's settlement of a job, once the store has
// confirmed it.
type sequel struct {
	id   string
	mark core.Receipt
	// uncounted says that the statistics don't have the job's end yet.
	uncounted bool
	// carried follows if the settlement was carried out. One that is resent after a
	// turn's repeat, and skipped then, was carried out by that turn's first call.
	carried ending
	resent  bool
	// transacted says that the handler settled the job in a transaction. If that
	// has committed, the settlement is skipped and committed follows.
	transacted bool
	committed  ending
}

// ending is how a job ended.
type ending struct {
	processed, failed bool
	// buried is for the hook, and notices for the log.
	buried  []Buried
	notices []notice
}

func (b *Batch) ending(i int, o *core.Outcome, settled *core.Settlement) ending {
	e := ending{processed: settled.Processed, failed: settled.Failed}
	if settled.Failed {
		e.buried = b.burials(i, o)
		e.notices = b.notices(i, o, settled, e.buried)
	}
	return e
}

// sequels lists what is to follow the settlements of a closed batch. What its jobs'
// failures have to say is said at once, unless only the store knows how they end.
func (b *Batch) sequels(settled []core.Settlement) (list []sequel, now []notice) {
	for i := range b.Claims {
		t, transacted := b.transacted[i]
		if !transacted && !settled[i].Failed {
			continue
		}
		c := &b.Claims[i]
		q := sequel{id: c.ID, mark: c.Receipt, carried: b.ending(i, &b.outcomes[i], &settled[i])}
		if transacted {
			q.transacted, q.uncounted, q.committed = true, true, b.ending(i, &t.outcome, &t.settled)
			q.committed.notices = append(q.committed.notices, b.overruled(i, &t.outcome)...)
		} else {
			now = append(now, q.carried.notices...)
			q.carried.notices = nil
		}
		if transacted || len(q.carried.buried) > 0 {
			list = append(list, q)
		}
	}
	return list, now
}

// confirmed removes the sequels of what a turn has settled, counts what only now is
// known to have happened, and gives how these jobs ended.
func (s *shard) confirmed(settled []core.Settlement, r *ports.TurnReply) (ended []ending) {
	if len(s.sequels) == 0 {
		return nil
	}
	for i := range settled {
		at := slices.IndexFunc(s.sequels, func(q sequel) bool {
			return q.mark == settled[i].Receipt && q.id == settled[i].ID
		})
		if at < 0 || slices.Contains(r.Deferred, i) {
			continue
		}
		q := &s.sequels[at]
		if r.Repeat { // it is sent again, and then the reply tells
			q.resent = true
			continue
		}
		var end ending
		switch skipped := slices.Contains(r.Skipped, i); {
		case !skipped, q.resent && !q.transacted:
			end = q.carried
		case q.transacted:
			end = q.committed
		}
		if q.uncounted {
			s.stats.count(end.processed, end.failed)
		}
		ended = append(ended, end)
		s.sequels = slices.Delete(s.sequels, at, at+1)
	}
	return ended
}

// tell logs how jobs have ended, and tells the hook what was buried.
func (e *Engine) tell(ended []ending) {
	for i := range ended {
		e.logAll(ended[i].notices)
		e.hooks.tell(ended[i].buried)
	}
}
