package bulk

import (
	"context"
	"slices"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A run over shards of 3, 2 and 4 dead letters, in steps that its limits and the shards bound.
func TestARunEndsAtItsLimitsAndContinuesFromItsCheckpoint(t *testing.T) {
	tests := map[string]struct {
		o         Options
		unreached int // a shard, or -1
		steps     []int
		limited   bool
		// from is the shard of the last checkpoint.
		from int
	}{
		"no limit":                        {unreached: -1, steps: []int{3, 2, 4}, from: 2},
		"a limit within a shard":          {o: Options{Limit: 4}, unreached: -1, steps: []int{3, 1}, limited: true, from: 1},
		"a limit of all entries":          {o: Options{Limit: 9}, unreached: -1, steps: []int{3, 2, 4}, from: 2},
		"a stop after the first step":     {o: Options{Stop: func(int) bool { return true }}, unreached: -1, steps: []int{3}, limited: true},
		"a stop after the last step":      {o: Options{Stop: func(done int) bool { return done == 9 }}, unreached: -1, steps: []int{3, 2, 4}, from: 2},
		"a shard that can't be reached":   {unreached: 1, steps: []int{3, 4}, from: 1},
		"a limit behind an unreached one": {o: Options{Limit: 5}, unreached: 1, steps: []int{3, 2}, limited: true, from: 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			stats := ports.QueueStats{Queue: ports.Queue{Name: "orders", Shards: 3}, Now: 1000}
			for at, dead := range []int64{3, 2, 4} {
				shard := core.Shard{Queue: "orders", Index: at}
				if at == tt.unreached {
					stats.Unreached = append(stats.Unreached, shard)
					continue
				}
				stats.Shards = append(stats.Shards, ports.ShardStats{Shard: shard, Counts: ports.Counts{Dead: dead}})
				stats.Dead += dead
			}
			tt.o.Before, tt.o.Keeps = core.MaxInstant, true
			r := New(Standing{Action: "purge all", Queue: "orders"}, tt.o, new(Tally))
			var steps []int
			sum := 0
			err := Repeat(context.Background(), r, &stats, func(_ core.Shard, limit int) (ports.StepReply, error) {
				steps, sum = append(steps, limit), sum+limit
				return ports.StepReply{Handled: limit, More: true}, nil
			})
			if err != nil || r.Limited != tt.limited || len(r.Missed) != len(stats.Unreached) {
				t.Errorf("error %v, limited %v, missed %v", err, r.Limited, r.Missed)
			}
			if !slices.Equal(steps, tt.steps) || r.Handled != sum || r.Met != sum {
				t.Errorf("steps of %v, want %v; handled %d, met %d", steps, tt.steps, r.Handled, r.Met)
			}
			next := New(Standing{Action: "purge all", Queue: "orders"}, Options{Before: core.MaxInstant, Keeps: true}, new(Tally))
			if err := next.Continue(r.Last); err != nil || next.At.Shard != tt.from || next.Handled > sum || next.At.Before != 1001 {
				t.Errorf("continued from shard %d, want %d: handled %d, before %d, %v", next.At.Shard, tt.from, next.Handled, next.At.Before, err)
			}
		})
	}
}
