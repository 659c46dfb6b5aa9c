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
		count  int64
		shards int
		want   int64
	}{
		{0, 3, 0},
		{30, 3, 10},
		{31, 3, 11}, // rounded up
		{1, 3, 1},   // each shard keeps one
		{1 << 53, 1, 1 << 53},
		{5, 0, 5},
	} {
		if got := (core.Retention{Count: c.count}).Part(c.shards); got != c.want {
			t.Errorf("of %d, a shard of %d keeps %d, want %d", c.count, c.shards, got, c.want)
		}
	}
}
