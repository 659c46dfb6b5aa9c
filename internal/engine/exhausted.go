package engine

import "github.com/skeinq/skein/core"

// Exhausted is a payload that went to the morgue since its job's retries or
// recoveries were used up.
type Exhausted struct {
	Shard   core.Shard
	ID      string
	Payload core.Payload
	// Error is the text kept with it.
	Error string
}

// exhausted is what an outcome exhausts; nil if nothing, or nobody asks.
func (s *shard) exhausted(c *core.Claim, o *core.Outcome) *Exhausted {
	if s.node.cfg.Exhausted == nil {
		return nil
	}
	at, ok := s.queue.Policy.Exhausts(c, o)
	if !ok {
		return nil
	}
	return s.buried(c, at, o.Error)
}

func (s *shard) buried(c *core.Claim, position int, text string) *Exhausted {
	return &Exhausted{Shard: s.id, ID: c.ID, Payload: c.Payloads[position], Error: text}
}

// buriedByRecovery is what follows the settlement of a job that has lost its owner too
// often.
func (s *shard) buriedByRecovery(c *core.Claim, settled *core.Settlement) sequel {
	end := ending{failed: true}
	if s.node.cfg.Exhausted != nil {
		end.exhausted = s.buried(c, 0, settled.BuryError)
	}
	return sequel{id: c.ID, mark: c.Mark, uncounted: true, carried: end}
}

// bid calls the hook beside the work; what goes wrong in it is logged.
func (e *Engine) bid(farewells []*Exhausted) {
	if len(farewells) == 0 {
		return
	}
	e.hooks.Go(func() {
		for _, f := range farewells {
			err := Guard(func() error { return e.cfg.Exhausted(e.handlerCtx, *f) })
			if err != nil {
				e.log.Error("skein: the hook for exhausted retries failed",
					"shard", f.Shard.String(), "id", f.ID, "error", err)
			}
		}
	})
}
