package core_test

import (
	"math"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// untilMorgue runs a job that always fails and returns how long it lived.
func untilMorgue(t *testing.T, maxRetries, jitter int) time.Duration {
	policy := core.RetryPolicy{MaxRetries: maxRetries}
	now := core.Instant(0)
	job := core.Job{ID: "id", Payloads: []core.Payload{payload("v", 0)}, State: core.Pushed(core.When{}, now)}
	for range maxRetries + 1 {
		s := policy.Settlement(&core.Claim{Job: job}, &core.Outcome{Kind: core.Failed, Error: "boom"}, jitter)
		back, dead := s.Apply(job, now)
		if len(dead.Payloads) > 0 {
			return now.Sub(0)
		}
		job, now = back, back.PerformAt
	}
	t.Fatalf("%d retries did not end in the morgue", maxRetries)
	return 0
}

func TestBackoffVectors(t *testing.T) {
	type vector struct {
		N, R       int
		Seconds    int
		MaxRetries int `json:"max_retries"`
		Days       int
	}
	for _, v := range vectors[vector](t, "backoff.json") {
		if v.MaxRetries == 0 {
			if got, want := core.DefaultBackoff(v.N, v.R), time.Duration(v.Seconds)*time.Second; got != want {
				t.Errorf("retry %d with jitter %d waits %v, want %v", v.N, v.R, got, want)
			}
			continue
		}

		var total time.Duration
		for jitter := range core.BackoffJitter {
			total += untilMorgue(t, v.MaxRetries, jitter)
		}
		if days := int(total / core.BackoffJitter / (24 * time.Hour)); days != v.Days {
			t.Errorf("%d retries last %d days, want %d", v.MaxRetries, days, v.Days)
		}
	}
}

func TestDefaultBackoffNeverOverflows(t *testing.T) {
	for _, n := range []int{309, 310, 1000, math.MaxInt32, math.MaxInt} {
		if got := core.DefaultBackoff(n, core.BackoffJitter-1); got < core.DefaultBackoff(308, 0) {
			t.Errorf("retry %d waits %v", n, got)
		}
	}
	if got := core.DefaultBackoff(-1, 0); got != 15*time.Second {
		t.Errorf("retry -1 waits %v, want that of retry 0", got)
	}
}
