package engine

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Exhausted is a payload that went to the morgue since its job's retries or
// recoveries were used up.
type Exhausted struct {
	Shard   core.Shard
	ID      string
	Payload core.Payload
	// Error is the text kept with it.
	Error string
}

// farewell is an Exhausted whose settlement the store has not confirmed.
type farewell struct {
	mark core.Mark
	what Exhausted
}

// farewells lists what a batch's settlements exhaust.
func (b *Batch) farewells(settled []core.Settlement) []farewell {
	if b.shard.node.cfg.Exhausted == nil {
		return nil
	}
	var list []farewell
	for i := range b.Claims {
		if at, ok := b.shard.queue.Policy.Exhausts(&b.Claims[i], &b.outcomes[i]); ok {
			list = append(list, newFarewell(b.shard, &b.Claims[i], at, settled[i].BuryError))
		}
	}
	return list
}

func newFarewell(s *shard, c *core.Claim, position int, text string) farewell {
	return farewell{c.Mark, Exhausted{Shard: s.id, ID: c.ID, Payload: c.Payloads[position], Error: text}}
}

// confirmed removes and gives those whose settlements a turn has carried out.
func (s *shard) confirmed(settled []core.Settlement, r *ports.TurnReply) []farewell {
	if len(s.farewells) == 0 {
		return nil
	}
	var done []farewell
	for i := range settled {
		if slices.Contains(r.Held, i) {
			continue
		}
		at := slices.IndexFunc(s.farewells, func(f farewell) bool {
			return f.mark == settled[i].Mark && f.what.ID == settled[i].ID
		})
		if at < 0 {
			continue
		}
		if !slices.Contains(r.Skipped, i) {
			done = append(done, s.farewells[at])
		}
		s.farewells = slices.Delete(s.farewells, at, at+1)
	}
	return done
}

// bid calls the hook beside the work; what goes wrong in it is logged.
func (e *Engine) bid(farewells []farewell) {
	if len(farewells) == 0 {
		return
	}
	e.hooks.Go(func() {
		for _, f := range farewells {
			err := Guard(func() error { return e.cfg.Exhausted(e.handlerCtx, f.what) })
			if err != nil {
				e.log.Error("skein: the hook for exhausted retries failed",
					"shard", f.what.Shard.String(), "id", f.what.ID, "error", err)
			}
		}
	})
}
