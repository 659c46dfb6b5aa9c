package scores_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/skeinq/skein/internal/scores"
)

// Scores of one source never repeat, whatever the clock does, and those of a push are in its order.
func TestScoresRise(t *testing.T) {
	var s scores.Source
	now := time.UnixMicro(1_700_000_000_000_000)
	got := []int64{s.Take(3, now), s.Take(1, now.Add(-time.Hour)), s.Take(2, now), s.Take(1, now.Add(time.Second))}
	first := now.UnixMicro()
	if want := []int64{first, first + 3, first + 4, first + 1_000_000}; !slices.Equal(got, want) {
		t.Errorf("scores %v, want %v", got, want)
	}
	if at := scores.At(1_700_000_000_250_000); at != 1_700_000_000.25 {
		t.Errorf("score %v", at)
	}
}

func TestScoresOfGoroutinesDiffer(t *testing.T) {
	var s scores.Source
	var all sync.Map
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1000 {
				first := s.Take(2, time.Time{})
				for _, score := range []int64{first, first + 1} {
					if _, taken := all.LoadOrStore(score, nil); taken {
						t.Errorf("score %d twice", score)
					}
				}
			}
		})
	}
	wg.Wait()
}
