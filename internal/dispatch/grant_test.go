package dispatch

import (
	"testing"
	"time"
)

func TestThePaceFollowsWhatJobsTake(t *testing.T) {
	var p Pace
	p.Observe(80*time.Millisecond, 1)
	p.Observe(0, 1)
	if p.average != 70*time.Millisecond {
		t.Errorf("average %v after 80 ms and 0 ms, want an eighth less than 80 ms", p.average)
	}
	for range 100 {
		p.Observe(20*time.Millisecond, 2)
	}
	if d := p.average - 10*time.Millisecond; d.Abs() > time.Millisecond {
		t.Errorf("average %v after many of 10 ms", p.average)
	}
}
