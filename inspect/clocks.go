package inspect

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// clocksFor is how long the list of servers may take.
const clocksFor = 2 * time.Second

// mostClocks is the largest number of servers that the check names.
const mostClocks = 3

// checkClocks compares the clocks of this process and of the announced servers with the store's. It
// is not possible if the servers can't be listed.
func (i *Inspector) checkClocks(ctx context.Context) Check {
	row := Check{Name: "clocks"}
	ctx, cancel := context.WithTimeout(ctx, clocksFor)
	defer cancel()

	before := time.Now()
	reply, err := ask(i, func(s Store) (ports.NodesReply, error) { return s.Nodes(ctx) })
	if err != nil {
		row.Status, row.Value, row.Advice = CheckUnknown, err.Error(),
			"run the check again once the list of servers can be read"
		return row
	}

	var wrong []string
	if off := aheadOf(reply.Now, before, time.Now()); off.Abs() >= ports.ClockLimit {
		wrong = append(wrong, "this process "+offText(off))
	}
	servers := 0
	for at := range reply.Nodes {
		n := &reply.Nodes[at]
		if n.State(reply.Now) == ports.NodeGone || n.Status.ClockAhead.Abs() < ports.ClockLimit {
			continue
		}
		if servers++; servers <= mostClocks {
			wrong = append(wrong, fmt.Sprintf("server %s %s", n.Name, offText(n.Status.ClockAhead)))
		}
	}
	if servers > mostClocks {
		wrong = append(wrong, fmt.Sprintf("%d more servers", servers-mostClocks))
	}

	row.Value = fmt.Sprintf("all within %v of the store's clock", ports.ClockLimit)
	if len(wrong) > 0 {
		row.Status, row.Value = CheckWarn, strings.Join(wrong, ", ")
		row.Advice = "synchronise the clocks of these hosts and of the store, as NTP does: " +
			"default scores come from the clocks of pushers, and times on dashboards from those of servers"
	}
	return row
}

// aheadOf returns how far this process's clock is ahead of the store's, which showed now at some
// time between before and after. The uncertainty counts as no difference.
func aheadOf(now core.Instant, before, after time.Time) time.Duration {
	switch first, last := core.InstantOf(before), core.InstantOf(after); {
	case now < first:
		return first.Sub(now)
	case now > last:
		return last.Sub(now)
	}
	return 0
}

// offText describes a difference of a clock from the store's.
func offText(ahead time.Duration) string {
	if ahead < 0 {
		return fmt.Sprintf("is %v behind", (-ahead).Round(time.Millisecond))
	}
	return fmt.Sprintf("is %v ahead", ahead.Round(time.Millisecond))
}
