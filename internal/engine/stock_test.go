package engine

import (
	"testing"
	"time"

	"github.com/skeinq/skein/internal/dispatch"
)

func paced(each time.Duration) dispatch.Pace {
	var p dispatch.Pace
	p.Observe(each, 1)
	return p
}

func TestHowManyBatchesAShardClaimsAhead(t *testing.T) {
	for name, c := range map[string]struct {
		pace                             dispatch.Pace
		lanes, batch, prefetch, parallel int
		want                             int
	}{
		"nothing is known":                        {dispatch.Pace{}, 5, 1, 256, 0, 256},
		"the prefetch counts jobs":                {dispatch.Pace{}, 1, 5, 10, 0, 2},
		"no prefetch":                             {paced(time.Millisecond), 5, 1, 0, 0, 0},
		"all lanes may work the shard":            {paced(time.Second), 2, 1, 256, 2, 256},
		"one does, and nothing is known":          {dispatch.Pace{}, 2, 1, 256, 1, 0},
		"one does: what starts within 50 ms":      {paced(time.Millisecond), 2, 1, 256, 1, 50},
		"two do":                                  {paced(time.Millisecond), 5, 1, 256, 2, 100},
		"one does jobs that take no time at all":  {paced(0), 2, 1, 256, 1, 256},
		"one does: at most the prefetch":          {paced(time.Millisecond), 2, 1, 10, 1, 10},
		"one does long jobs":                      {paced(time.Second), 2, 1, 256, 1, 0},
		"one does less than a batch within 50 ms": {paced(5 * time.Millisecond), 2, 20, 256, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			queue := &Queue{BatchSize: c.batch, Parallel: c.parallel}
			queue.inForce.Store(&dispatch.Bounds{})
			shard := claims{
				queue:    queue,
				patience: time.Second,
				pace:     c.pace,
			}
			if got := shard.stock(c.prefetch, c.lanes, c.lanes); got != c.want {
				t.Errorf("stock = %d, want %d", got, c.want)
			}
		})
	}
}
