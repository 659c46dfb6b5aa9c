package engine

import (
	"testing"
	"time"
)

func paced(each time.Duration) pace {
	var p pace
	p.observe(each, 1)
	return p
}

func TestHowManyBatchesAShardClaimsAhead(t *testing.T) {
	for name, c := range map[string]struct {
		pace                             pace
		lanes, batch, prefetch, parallel int
		want                             int
	}{
		"nothing is known":                        {pace{}, 5, 1, 256, 0, 256},
		"the prefetch counts jobs":                {pace{}, 1, 5, 10, 0, 2},
		"no prefetch":                             {paced(time.Millisecond), 5, 1, 0, 0, 0},
		"all lanes may work the shard":            {paced(time.Second), 2, 1, 256, 2, 256},
		"one does, and nothing is known":          {pace{}, 2, 1, 256, 1, 0},
		"one does: what starts within 50 ms":      {paced(time.Millisecond), 2, 1, 256, 1, 50},
		"two do":                                  {paced(time.Millisecond), 5, 1, 256, 2, 100},
		"one does jobs that take no time at all":  {paced(0), 2, 1, 256, 1, 256},
		"one does: at most the prefetch":          {paced(time.Millisecond), 2, 1, 10, 1, 10},
		"one does long jobs":                      {paced(time.Second), 2, 1, 256, 1, 0},
		"one does less than a batch within 50 ms": {paced(5 * time.Millisecond), 2, 20, 256, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := &pool{}
			p.laneCount.Store(int32(c.lanes))
			s := &shard{member: &member{pool: p}, pace: c.pace}
			s.node, s.queue = &node{cfg: Config{Prefetch: c.prefetch, PollInterval: time.Second}}, &Queue{BatchSize: c.batch, Parallel: c.parallel}
			if got := s.claimAhead(); got != c.want {
				t.Errorf("claimAhead = %d, want %d", got, c.want)
			}
		})
	}
}

func TestThePaceFollowsWhatJobsTake(t *testing.T) {
	p := paced(80 * time.Millisecond)
	p.observe(0, 1)
	if p.average != 70*time.Millisecond {
		t.Errorf("average %v after 80 ms and 0 ms, want an eighth less than 80 ms", p.average)
	}
	for range 100 {
		p.observe(20*time.Millisecond, 2)
	}
	if d := p.average - 10*time.Millisecond; d.Abs() > time.Millisecond {
		t.Errorf("average %v after many of 10 ms", p.average)
	}
}
