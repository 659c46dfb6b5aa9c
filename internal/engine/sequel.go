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
	mark core.Mark
	// uncounted says that the statistics don't have the job's end yet.
	uncounted bool
	// carried follows if the settlement was carried out.
	carried ending
	// transacted says that the handler settled the job in a transaction. If that
	// has committed, the settlement is skipped and committed follows.
	transacted bool
	committed  ending
}

// ending is how a job ended.
type ending struct {
	processed, failed bool
	exhausted         *Exhausted
}

func (s *shard) ending(c *core.Claim, o *core.Outcome, settled *core.Settlement) ending {
	return ending{processed: settled.Processed, failed: settled.Failed, exhausted: s.exhausted(c, o)}
}

// sequels lists what is to follow the batch's settlements.
func (b *Batch) sequels(settled []core.Settlement) []sequel {
	if b.transacted == nil && b.shard.node.cfg.Exhausted == nil {
		return nil
	}
	var list []sequel
	for i := range b.Claims {
		c := &b.Claims[i]
		q := sequel{id: c.ID, mark: c.Mark, carried: b.shard.ending(c, &b.outcomes[i], &settled[i])}
		if t, ok := b.transacted[i]; ok {
			q.transacted, q.uncounted, q.committed = true, true, b.shard.ending(c, &t.outcome, &t.settled)
		} else if q.carried.exhausted == nil {
			continue
		}
		list = append(list, q)
	}
	return list
}

// confirmed removes the sequels of what a turn has settled, counts what only now is
// known to have happened, and gives what was exhausted.
func (s *shard) confirmed(settled []core.Settlement, r *ports.TurnReply) (farewells []*Exhausted) {
	if len(s.sequels) == 0 {
		return nil
	}
	for i := range settled {
		at := slices.IndexFunc(s.sequels, func(q sequel) bool {
			return q.mark == settled[i].Mark && q.id == settled[i].ID
		})
		if at < 0 || slices.Contains(r.Held, i) {
			continue
		}
		q := &s.sequels[at]
		if q.transacted && s.turns.unknown { // it is sent again, and then the reply tells
			continue
		}
		var end ending
		switch skipped := slices.Contains(r.Skipped, i); {
		case !skipped:
			end = q.carried
		case q.transacted:
			end = q.committed
		}
		if q.uncounted {
			s.stats.count(end.processed, end.failed)
		}
		if end.exhausted != nil {
			farewells = append(farewells, end.exhausted)
		}
		s.sequels = slices.Delete(s.sequels, at, at+1)
	}
	return farewells
}
