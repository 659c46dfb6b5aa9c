package random

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// limit takes grants of some limiters of a queue, or stops one.
func (d *driver) limit() {
	q, keys := d.queue(), []string{"", "a", "b"}
	if rarely(d, "stop") {
		compareErr(d, "Stop", ports.StopRequest{
			Queue: q.Name,
			Key:   pick(d, "key", keys...),
			For:   pick(d, "for", 0, time.Microsecond, time.Second, 30*time.Second, core.MaxStop),
		}, ports.ShardStore.Stop)
		return
	}

	r := ports.TakeRequest{Queue: q.Name}
	for _, key := range keys[:pick(d, "takes", 1, 1, 2, 3)] {
		r.Takes = append(r.Takes, ports.Take{
			Key: key,
			Rate: pick(d, "rate", core.Rate{Count: 3, Per: time.Second, Burst: 2}, core.Rate{Count: 3, Per: time.Second},
				core.Rate{Count: 1, Per: time.Minute, Burst: 1}, core.Rate{Count: 1000, Per: time.Second},
				core.Rate{Count: 7, Per: core.MaxRatePer, Burst: 3}, core.Rate{}),
			Want:  pick(d, "want", 0, 1, 1, 2, 5, ports.MaxWant),
			Use:   pick(d, "use", 0, 0, 0, 1, 2, 40),
			Hold:  pick(d, "hold", 0, time.Second, core.MaxHold),
			Soon:  pick(d, "soon", 0, 0, 50*time.Millisecond, core.MaxHold),
			Ahead: pick(d, "ahead", 0, 0, time.Second, time.Minute+1500*time.Nanosecond, core.MaxAhead),
		})
	}
	compare(d, "Take", r, ports.ShardStore.Take)
}

func (d *driver) checkLimits(q ports.Queue) {
	compare(d, "Limits", ports.LimitsRequest{Queue: q.Name, Limit: pick(d, "limiters", 0, 1, 2)}, ports.ShardStore.Limits)
}
