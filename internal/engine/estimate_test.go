package engine

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

func paced(each time.Duration) pace {
	var p pace
	p.observe(each, 1)
	return p
}

func TestHowManyJobsAShardClaims(t *testing.T) {
	const free, busy = false, true
	for name, c := range map[string]struct {
		pace     pace
		batch    int
		prefetch int
		running  bool
		since    time.Duration
		want     int
	}{
		"nothing is known: one batch":                    {pace{}, 1, 256, free, 0, 1},
		"nothing is known, a large batch":                {pace{}, 50, 256, free, 0, 50},
		"nothing is known and the lane is busy":          {pace{}, 1, 256, busy, 0, 0},
		"what starts within 50 ms":                       {paced(time.Millisecond), 1, 256, free, 0, 50},
		"the same while the lane is busy":                {paced(time.Millisecond), 1, 256, busy, 0, 50},
		"as many as two turns give":                      {paced(time.Microsecond), 1, 1000, free, 0, 2 * core.MaxTurnJobs},
		"jobs that take no time at all":                  {paced(0), 1, 256, busy, 0, 256},
		"at most the prefetch":                           {paced(time.Millisecond), 1, 10, busy, 0, 10},
		"long jobs: one batch when free":                 {paced(time.Second), 1, 256, free, 0, 1},
		"long jobs: none when busy":                      {paced(time.Second), 1, 256, busy, 0, 0},
		"a short job that takes long this time":          {paced(time.Millisecond), 1, 256, busy, time.Second, 0},
		"no prefetch: a batch when free":                 {paced(time.Millisecond), 5, 0, free, 0, 5},
		"no prefetch: none when busy":                    {paced(time.Millisecond), 5, 0, busy, 0, 0},
		"less than a batch within 50 ms: none when busy": {paced(5 * time.Millisecond), 20, 256, busy, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.pace.want(c.batch, c.prefetch, c.running, c.since); got != c.want {
				t.Errorf("want = %d, want %d", got, c.want)
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
