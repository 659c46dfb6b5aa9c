package conformance

import (
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// settlements is what a holder may send: some of its claims, and rarely one of
// them twice, or one that was never its own.
func (d *duel) settlements(h *tenure) []core.Settlement {
	var settle []core.Settlement
	for _, c := range h.claims {
		if rapid.Bool().Draw(d.t, "settle") {
			settle = append(settle, d.settlement(h, c))
		}
	}
	if len(settle) > 0 && rarely(d, "twice") {
		settle = append(settle, settle[0])
	}
	if len(d.former) > 0 && rarely(d, "from the past") {
		for _, c := range pick(d, "former", d.former...).claims {
			settle = append(settle, d.settlement(h, c))
		}
	}
	if len(h.claims) > 0 && rarely(d, "wrong mark") {
		c := pick(d, "claim", h.claims...)
		c.Receipt.Number++
		settle = append(settle, d.settlement(h, c))
	}
	return settle
}

// settlement recovers what an earlier lease left, and lets the rest end somehow.
func (d *duel) settlement(h *tenure, c core.Claim) core.Settlement {
	if c.Receipt.Token != h.lease.Token && !rarely(d, "no recovery") {
		return d.policy.Recover(&c)
	}
	o := core.Outcome{
		Kind: pick(d, "outcome", core.Done, core.Done, core.Failed, core.Failed, core.Failed,
			core.Buried, core.Snoozed, core.Untouched, core.Dropped, core.Undecided),
		Error:    pick(d, "error", "boom", "bang"),
		Delay:    pick(d, "delay", 0, time.Second, -time.Second),
		OwnDelay: rapid.Bool().Draw(d.t, "own delay"),
	}
	for i := range c.Payloads {
		if rarely(d, "marked") {
			o.Payloads = append(o.Payloads, core.PayloadOutcome{
				Position: i,
				Bury:     rapid.Bool().Draw(d.t, "bury"),
				Error:    "of its own",
			})
		}
	}
	return d.policy.Settlement(&c, &o, rapid.IntRange(0, core.BackoffJitter-1).Draw(d.t, "jitter"))
}
