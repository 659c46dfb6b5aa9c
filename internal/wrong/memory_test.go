package wrong

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
)

// A fault without a time of its own is shown since it was first seen, and lag rises or falls
// compared with the last look.
func TestSinceAndTrendAreRemembered(t *testing.T) {
	answered := false
	look := func(at time.Duration, lag time.Duration, before Memory) (string, Memory) {
		v := &View{Now: now.Add(at), Nodes: []inspect.Node{server("blue", inspect.NodeAlive, "orders")}}
		v.Stats = []inspect.QueueStats{queue("orders", 2, lag, 5)}
		v.Silence = "refused"
		lines, after := Now(v, before)
		text := ""
		for _, l := range lines {
			if l.Seen != (l.Kind == NoAnswer && !answered) {
				t.Errorf("%v was only seen to begin: %v", l.Kind, l.Seen)
			}
			text += fmt.Sprintf("%v %v: %s; ", l.Kind, l.Since.Sub(now), l.Text)
		}
		return text, after
	}

	var memory Memory
	var got string
	for _, step := range []struct {
		at, lag time.Duration
		want    string
	}{
		{0, 2 * time.Minute, "no answer 0s: The store does not answer: refused; late -2m0s: 2 min behind, 5 waiting; "},
		{
			20 * time.Second,
			4 * time.Minute,
			"no answer 0s: The store does not answer: refused; late -4m0s: 4 min behind, 5 waiting; ",
		},
		{
			70 * time.Second,
			4 * time.Minute,
			"no answer 0s: The store does not answer: refused; late -4m0s: 4 min behind and growing, 5 waiting; ",
		},
		{
			90 * time.Second,
			80 * time.Second,
			"no answer 0s: The store does not answer: refused; late -1m20s: " +
				"1 min 20 s behind, catching up, 5 waiting; ",
		},
	} {
		if got, memory = look(step.at, step.lag, memory); got != step.want {
			t.Errorf("at %v: %s\nwant %s", step.at, got, step.want)
		}
	}

	v := &View{Now: now.Add(2 * time.Minute)}
	_, memory = Now(v, memory)
	answered = true
	if got, _ = look(3*time.Minute, 0, memory); got != "no answer 2m0s: The store does not answer: refused; " {
		t.Errorf("the store has been silent since its last answer, got %s", got)
	}
}

// Failures that fill all that is known of the past may have begun before it.
func TestFailuresThatFillThePastMayBeOlder(t *testing.T) {
	for minutes, seen := range map[int]bool{61: true, 30: false} {
		v := &View{
			Now:   now,
			Nodes: []inspect.Node{server("blue", inspect.NodeAlive, "orders")},
			Stats: []inspect.QueueStats{queue("orders", 2, 0, 0)},
		}
		v.Recent = map[string][]inspect.MinuteStats{"orders": nil}
		for at := minutes - 1; at >= 0; at-- {
			v.Recent["orders"] = append(v.Recent["orders"], inspect.MinuteStats{
				At:     now.Truncate(time.Minute).Add(-time.Duration(at) * time.Minute),
				Failed: 9,
			})
		}
		lines, _ := Now(v, Memory{})
		if len(lines) != 1 || lines[0].Kind != Failing || lines[0].Seen != seen {
			t.Errorf("failures of %d minutes: %+v", minutes, lines)
		}
	}
}

// A memory for a page that looks each second for hours must not keep each look, and a clock that
// steps back must not leave looks in its future.
func TestMemoryIsBounded(t *testing.T) {
	var memory Memory
	look := func(at time.Duration) (since time.Duration) {
		v := &View{Now: now.Add(at), Stats: []inspect.QueueStats{queue("orders", 2, time.Hour, 5)}, Silence: "refused"}
		var lines []Line
		lines, memory = Now(v, memory)
		return lines[0].Since.Sub(now)
	}

	for at := range 3600 {
		look(time.Duration(at) * time.Second)
	}

	lags := memory.lags["orders"]
	if want, oldest := 60, now.Add(time.Hour-time.Second-10*time.Minute); len(lags) != want ||
		lags[0].at.Before(oldest) {
		t.Errorf("%d lags are remembered, the oldest of %v; want %d since %v", len(lags), lags[0].at, want, oldest)
	}

	if got := look(-time.Hour); got != -time.Hour || len(memory.lags["orders"]) != 1 {
		t.Errorf("after a step back it is so since %v, with %d lags of a time to come; want %v, and this look's alone",
			got, len(memory.lags["orders"])-1, -time.Hour)
	}
}

// A paused queue has had no time to end anything once it is resumed: it is late at first, and does
// not move only if nothing has ended since.
func TestAQueueMovesAgainAfterAPause(t *testing.T) {
	var memory Memory
	for _, step := range []struct {
		at     time.Duration
		paused bool
		want   Kind
	}{
		{0, true, Paused},
		{time.Minute, true, Paused},
		{time.Minute + time.Second, false, Late},
		{6*time.Minute - 1, false, Late},
		{6 * time.Minute, false, NotMoving},
	} {
		v := &View{Now: now.Add(step.at), Nodes: []inspect.Node{server("blue", inspect.NodeAlive, "orders")}}
		v.Stats = []inspect.QueueStats{queue("orders", 2, time.Hour, 5)}
		v.Stats[0].Queue.Paused = step.paused
		v.Recent = map[string][]inspect.MinuteStats{"orders": nil}

		var lines []Line
		if lines, memory = Now(v, memory); len(lines) != 1 || lines[0].Kind != step.want {
			t.Errorf("at %v: %+v, want %v", step.at, lines, step.want)
		}
	}
}
