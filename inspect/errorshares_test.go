package inspect

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Short lists are read whole, and long ones get equal shares of what these leave.
func TestShortListsOfErrorsAreReadWhole(t *testing.T) {
	for want, entries := range map[string]int64{
		"[{b 3} {c 28} {a 29}]": 60,
		"[{b 3} {c 50} {a 97}]": 150,
		"[{b 0} {c 0} {a 1}]":   1,
	} {
		lists := []errorList{{queue: "a", size: 97}, {queue: "b", size: 3}, {queue: "c", size: 50}}
		shareOut(lists, entries)
		type share struct {
			queue string
			n     int64
		}
		var got []share
		for _, l := range lists {
			got = append(got, share{l.queue, l.share})
		}
		if text := fmt.Sprint(got); text != want {
			t.Errorf("%d entries are shared as %s, want %s", entries, text, want)
		}
	}
}

// An error was seen first at its first known failure: one whose time is unknown is not before it.
func TestAnErrorBeginsWithItsFirstKnownFailure(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2030, 1, 2, 3, minute, 0, 0, time.UTC) }
	var r errorRow
	for _, seen := range [][2]time.Time{{}, {at(5), at(6)}, {at(4), at(5)}, {at(7), at(8)}, {{}, at(1)}} {
		r.span(seen[0], seen[1])
	}
	if !r.First.Equal(at(4)) || !r.Last.Equal(at(8)) {
		t.Errorf("from %v to %v, want from %v to %v", r.First, r.Last, at(4), at(8))
	}
}

// A failure is in the step of its half hour. One of a server whose clock is ahead is in the last, and
// one of a day ago in none.
func TestEachFailureOfTheLastDayHasAStep(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	for ago, want := range map[time.Duration]int{
		-2 * time.Hour:             ErrorSteps - 1,
		0:                          ErrorSteps - 1,
		ErrorStep - 1:              ErrorSteps - 1,
		ErrorStep:                  ErrorSteps - 2,
		ErrorSteps*ErrorStep - 1:   0,
		ErrorSteps * ErrorStep:     -1,
		2 * ErrorSteps * ErrorStep: -1,
	} {
		g := errorGrouping{o: &ErrorsOptions{}, rows: map[string]*errorRow{}, keys: map[string]string{}}
		g.of.Now = now
		g.add(&ErrorEntry{
			State: ErrorRetrying, LastFailure: LastFailure{LastError: "boom", LastFailedAt: now.Add(-ago)},
		}, "")
		if at := slices.Index(g.rows["boom"].Steps, 1); at != want {
			t.Errorf("%v ago is in step %d, want %d", ago, at, want)
		}
	}
}

// Dead letters are read before jobs, which join their groups, and retried jobs before held ones. The
// time is the earliest of the queues' clocks.
func TestListsOfErrorsAreReadInOrder(t *testing.T) {
	at := func(second int) time.Time { return time.Date(2030, 1, 2, 3, 4, second, 0, time.UTC) }
	stats := func(queue string, now time.Time, dead, retrying, held int64) QueueStats {
		return QueueStats{
			Queue: Queue{Name: queue}, Now: now, Counts: Counts{Dead: dead, Retrying: retrying, Held: held},
		}
	}
	g := &errorGrouping{o: &ErrorsOptions{}}
	lists := g.lists([]QueueStats{
		stats("a", at(7), 9, 8, 1), stats("b", at(5), 0, 0, 0), stats("c", at(6), 6, 5, 2), stats("d", at(8), 0, 4, 4),
	})

	var got []string
	for _, l := range lists {
		got = append(got, fmt.Sprint(l.queue, " ", l.state, " ", l.size))
	}
	want := []string{
		"c dead 6", "a dead 9", "c retrying 3", "a retrying 7", "a held 1", "c held 2", "d held 4",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !g.of.Now.Equal(at(5)) {
		t.Errorf("the time is %v, want the earliest, %v", g.of.Now, at(5))
	}
}
