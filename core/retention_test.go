package core_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

func TestRetentionByAge(t *testing.T) {
	for _, c := range []struct {
		age       time.Duration
		now, want core.Instant
	}{
		{0, 5_000_000, 0},
		{time.Second, 5_000_000, 4_000_000},
		{time.Hour, 5_000_000, 0},
	} {
		if got := (core.Retention{Age: c.age}).Before(c.now); got != c.want {
			t.Errorf("an age of %v at %d removes what changed before %d, want %d", c.age, c.now, got, c.want)
		}
	}
}

func TestRetentionByCount(t *testing.T) {
	for _, c := range []struct {
		count, dead int64
		shards      int
		want        int64
	}{
		{0, 100, 3, 0},
		{30, 10, 3, 0},
		{30, 11, 3, 1},
		{31, 11, 3, 0}, // rounded up
		{1, 5, 3, 4},   // each shard keeps one
		{1 << 53, 1 << 50, 1, 0},
	} {
		if got := (core.Retention{Count: c.count}).Excess(c.dead, c.shards); got != c.want {
			t.Errorf("of %d, a shard of %d with %d has %d too many, want %d", c.count, c.shards, c.dead, got, c.want)
		}
	}
}
