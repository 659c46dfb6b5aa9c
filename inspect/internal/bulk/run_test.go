package bulk

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
		"no limit": {unreached: -1, steps: []int{3, 2, 4}, from: 2},
		"a limit within a shard": {
			o:         Options{Limit: 4},
			unreached: -1,
			steps:     []int{3, 1},
			limited:   true,
			from:      1,
		},
		"a limit of all entries": {o: Options{Limit: 9}, unreached: -1, steps: []int{3, 2, 4}, from: 2},
		"a stop after the first step": {o: Options{Stop: func(int) bool {
			return true
		}}, unreached: -1, steps: []int{3}, limited: true},
		"a stop after the last step": {o: Options{Stop: func(done int) bool {
			return done == 9
		}}, unreached: -1, steps: []int{3, 2, 4}, from: 2},
		"a shard that can't be reached": {unreached: 1, steps: []int{3, 4}, from: 1},
		"a limit behind an unreached one": {
			o:         Options{Limit: 5},
			unreached: 1,
			steps:     []int{3, 2},
			limited:   true,
			from:      1,
		},
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

			next := New(Standing{Action: "purge all", Queue: "orders"},
				Options{Before: core.MaxInstant, Keeps: true}, new(Tally))
			if err := next.Continue(r.Last); err != nil || next.At.Shard != tt.from || next.Handled > sum ||
				next.At.Before != 1001 {
				t.Errorf("continued from shard %d, want %d: handled %d, before %d, %v",
					next.At.Shard, tt.from, next.Handled, next.At.Before, err)
			}
		})
	}
}

// orders returns the state of a queue with a shard for each number of dead letters.
func orders(dead ...int64) *ports.QueueStats {
	stats := &ports.QueueStats{Queue: ports.Queue{Name: "orders", Shards: len(dead)}, Now: 1000}
	for at, n := range dead {
		stats.Shards = append(stats.Shards, ports.ShardStats{
			Shard:  core.Shard{Queue: "orders", Index: at},
			Counts: ports.Counts{Dead: n},
		})
		stats.Dead += n
	}
	return stats
}

func newRun(o Options) *Run {
	o.Before, o.Keeps = core.MaxInstant, true
	return New(Standing{Action: "purge all", Queue: "orders"}, o, new(Tally))
}

// all is a step that handles all that it may.
func all(_ core.Shard, limit int) (ports.StepReply, error) {
	return ports.StepReply{Handled: limit, More: true}, nil
}

func TestAContinuedRunSkipsFinishedShards(t *testing.T) {
	first := newRun(Options{Limit: 4})
	if err := Repeat(t.Context(), first, orders(3, 2, 4), all); err != nil {
		t.Fatal(err)
	}

	next := newRun(Options{})
	if err := next.Continue(first.Last); err != nil {
		t.Fatal(err)
	}

	var shards []int
	err := Repeat(t.Context(), next, orders(3, 1, 4), func(
		shard core.Shard,
		limit int,
	) (ports.StepReply, error) { // 3 others are dead since
		shards = append(shards, shard.Index)
		return all(shard, limit)
	})
	if want := []int{1, 2}; err != nil || !slices.Equal(shards, want) || next.Handled != 9 {
		t.Errorf("steps on the shards %v, want %v; handled %d; %v", shards, want, next.Handled, err)
	}
}

// A run that fails before its first step keeps the checkpoint with which it was continued.
func TestARunThatCanNotContinueKeepsItsCheckpoint(t *testing.T) {
	first, next := newRun(Options{Limit: 4}), newRun(Options{})
	if err := errors.Join(Repeat(t.Context(), first, orders(3, 2, 4), all), next.Continue(first.Last)); err != nil {
		t.Fatal(err)
	}
	if err := Repeat(t.Context(), next, orders(9), all); !errors.Is(err, ErrInvalidCheckpoint) ||
		next.Last != first.Last {
		t.Errorf("on another number of shards: %v, the last checkpoint is %q, want %q", err, next.Last, first.Last)
	}
}

func TestNoCheckpointIsBehindAMissedOrTheLastShard(t *testing.T) {
	r := newRun(Options{})
	r.At.Shards = 3
	if err := r.note(1, ports.Cursor{Key: 1, ID: "a"}); err != nil {
		t.Fatal(err)
	}
	within := r.Last
	if err := r.note(3, ports.Cursor{}); err != nil || r.Last != within {
		t.Errorf("behind the last shard: %v, the checkpoint is %q, want %q", err, r.Last, within)
	}
	r.Missed = []core.Shard{{Queue: "orders", Index: 1}}
	if err := r.note(2, ports.Cursor{Key: 2, ID: "b"}); err != nil || r.At.Shard != 1 ||
		r.At.cursor() != (ports.Cursor{}) {
		t.Errorf("behind a missed shard: %v, the checkpoint is shard %d, %v, want the beginning of shard 1",
			err, r.At.Shard, r.At.cursor())
	}
}

func TestAStepIsBounded(t *testing.T) {
	var steps []int
	err := Repeat(t.Context(), newRun(Options{}), orders(ports.MaxStep+1), func(
		shard core.Shard,
		limit int,
	) (ports.StepReply, error) {
		steps = append(steps, limit)
		return all(shard, limit)
	})
	if want := []int{ports.MaxStep, 1}; err != nil || !slices.Equal(steps, want) {
		t.Errorf("steps of %v, want %v; %v", steps, want, err)
	}
}

// Only steps without a finished entry are counted, and entries that are gone are dealt with.
func TestSmallStepsEnd(t *testing.T) {
	r, left := newRun(Options{}), partSteps+1
	err := Repeat(t.Context(), r, orders(int64(left)+2), func(core.Shard, int) (ports.StepReply, error) {
		left--
		return ports.StepReply{Handled: 1, More: left > 0}, nil
	})
	if err != nil || r.Handled != partSteps+1 || r.Done != r.Total {
		t.Errorf("handled %d, done %d of %d; %v", r.Handled, r.Done, r.Total, err)
	}
}

func TestAnErrorNamesItsShard(t *testing.T) {
	lost := errors.New("no answer")
	step := func(core.Shard, int) (ports.StepReply, error) { return ports.StepReply{}, lost }
	if err := Repeat(t.Context(), newRun(Options{}), orders(0, 1), step); !errors.Is(err, lost) ||
		!strings.Contains(fmt.Sprint(err), "orders/1") {
		t.Errorf("a failed step: %v", err)
	}
	for name, k := range map[string]*numbers{"a list": {failed: "list"}, "a step": {failed: "act"}} {
		k.shards, k.lost = [][]int{{}, {1}}, lost
		if err := k.visit(t.Context(), newRun(Options{})); !errors.Is(err, lost) ||
			!strings.Contains(fmt.Sprint(err), "orders/1") {
			t.Errorf("%s that failed: %v", name, err)
		}
	}
}

// A run waits between its steps as Rate demands, but not for one that it won't take.
func TestARunThatIsStoppedDoesNotWait(t *testing.T) {
	for want, stop := range map[time.Duration]bool{0: true, 3 * time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			r := newRun(Options{Rate: 1, Stop: func(int) bool { return stop }})
			if err := Repeat(t.Context(), r, orders(1, 2), all); err != nil || time.Since(began) != want {
				t.Errorf("it ended after %v, want %v: %v", time.Since(began), want, err)
			}
		})
	}
}
