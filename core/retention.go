package core

import (
	"fmt"
	"strings"
	"time"
)

// RetentionGrace is how long after a bound of a morgue has become known no dead letter is removed by
// it, so that operators can see it first and prevent it.
const RetentionGrace = 10 * time.Minute

// Retention is which dead letters of a queue are kept (docs/rules.md 5). The zero value keeps all of
// them for ever.
type Retention struct {
	// Age is how long a dead letter is kept after its last change. 0 keeps it for ever.
	Age time.Duration
	// Count is how many dead letters of the queue are kept, those that changed last. Each shard keeps
	// an equal part, rounded up. 0 is no limit.
	Count int64
}

// Before returns the time before which a dead letter must have changed last to be removed for its
// age. It is 0, which removes none, if there is no Age.
func (r Retention) Before(now Instant) Instant {
	if r.Age <= 0 {
		return 0
	}
	return max(0, now.Add(-r.Age))
}

// Part returns how many dead letters each shard of a queue keeps, given how many shards the queue has.
// 0 is no limit.
func (r Retention) Part(shards int) int64 {
	return partOf(r.Count, shards)
}

// Any reports whether there is a bound.
func (r Retention) Any() bool { return r.Age > 0 || r.Count > 0 }

// String describes the bounds by the names of their settings, such as "morgue-age 720h0m0s".
func (r Retention) String() string {
	var parts []string
	if r.Age > 0 {
		parts = append(parts, fmt.Sprintf("%s %v", SettingMorgueAge, r.Age))
	}
	if r.Count > 0 {
		parts = append(parts, fmt.Sprintf("%s %d", SettingMorgueCount, r.Count))
	}
	return strings.Join(parts, ", ")
}
