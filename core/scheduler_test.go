package core_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// The transcripts below show a lane of shards A, B, C …, one of each queue. A step is "heads >
// choice", and it is always second 10. A head is the second at which the shard's next job is due,
// or "-" if the shard has no job. A choice is the shard whose batch runs, with "!" if that batch
// has no success, or "wait" until a head changes, or "sleep" for the poll interval.
const pollInterval = time.Second

func transcript(t *testing.T, newScheduler core.SchedulerFunc, steps string) {
	t.Helper()
	var lane core.Scheduler
	for n, line := range strings.Split(strings.TrimSpace(steps), "\n") {
		heads, want, ok := strings.Cut(strings.TrimSpace(line), " > ")
		if !ok {
			t.Fatalf("step %d: %q", n, line)
		}
		if lane == nil {
			lane = newScheduler(core.SchedulerConfig{
				Shards:       queueEach(len(strings.Fields(heads))),
				PollInterval: pollInterval,
			})
		}
		choice := lane.Next(10_000_000, parseHeads(t, heads))
		if got := choiceText(choice); got != strings.TrimSuffix(want, "!") {
			t.Fatalf("step %d: heads %s: chose %s, want %s", n, heads, got, want)
		}
		if choice.Index >= 0 {
			lane.Ran(choice.Index, !strings.HasSuffix(want, "!"))
		}
	}
}

func queueEach(count int) []core.Shard {
	var shards []core.Shard
	for i := range count {
		shards = append(shards, core.Shard{Queue: string(rune('A' + i))})
	}
	return shards
}

func parseHeads(t *testing.T, text string) []core.Head {
	var heads []core.Head
	for field := range strings.FieldsSeq(text) {
		var second core.Instant
		if field == "-" {
			heads = append(heads, core.Head{})
			continue
		}
		if _, err := fmt.Sscan(field, &second); err != nil {
			t.Fatalf("head %q: %v", field, err)
		}
		heads = append(heads, core.Head{Due: second * 1_000_000, OK: true})
	}
	return heads
}

func choiceText(c core.Choice) string {
	switch {
	case c.Index >= 0 && c.Wait == 0 && !c.Sleep:
		return string(rune('A' + c.Index))
	case c == core.Choice{Index: -1}:
		return "wait"
	case c == core.Choice{Index: -1, Wait: pollInterval, Sleep: true}:
		return "sleep"
	}
	return fmt.Sprintf("%+v", c)
}

func TestSchedulers(t *testing.T) {
	strictBA := core.StrictBy("B", "A")
	tests := []struct {
		name      string
		scheduler core.SchedulerFunc
		steps     string
	}{
		{"Seq visits its shards in turn", core.Seq, `
			9 1 5 > A
			9 1 5 > B
			9 1 5 > C
			9 1 5 > A`},
		{"Seq skips what is not due", core.Seq, `
			9 - 11 10 > A
			9 - 11 10 > D
			9 - 11 10 > A`},
		{"Seq sleeps after a round without success", core.Seq, `
			1 1 1 > A!
			1 1 1 > B!
			1 1 1 > C!
			1 1 1 > sleep
			1 1 1 > A!
			1 1 1 > B!
			1 1 1 > C!
			1 1 1 > sleep`},
		{"Seq continues for a round after each success", core.Seq, `
			1 1 1 > A!
			1 1 1 > B
			1 1 1 > C!
			1 1 1 > A!
			1 1 1 > B!
			1 1 1 > sleep
			1 1 1 > C`},
		{"Seq counts a shard without work as no success", core.Seq, `
			1 - 1 > A!
			1 - 1 > C!
			1 - 1 > sleep
			1 - 1 > A`},
		{"Seq looks again after one poll interval", core.Seq, `
			- - - > sleep
			- - 1 > C
			- - - > sleep
			- - - > sleep
			1 - - > A`},
		{"Seq with one shard", core.Seq, `
			1  > A
			1  > A!
			1  > sleep
			11 > sleep
			10 > A`},

		{"Lag takes the oldest", core.Lag, `
			9 1 5 > B
			9 - 5 > C
			9 - - > A
			- - - > wait`},
		{"Lag takes the first of equals", core.Lag, `
			5 3 3 > B`},
		{"Lag knows no lag of what is not due", core.Lag, `
			11 10 12 > B
			11 -  12 > wait`},

		{"Strict takes the first in order of priority", strictBA, `
			1 9 5 > B
			1 - 5 > A
			- - 5 > C
			- - - > wait`},
		{"Strict waits for what is not due", strictBA, `
			11 11 10 > C
			11 11 11 > wait`},
		{"Strict without priorities takes the oldest", core.StrictBy(), `
			9 1 5 > B
			9 - 5 > C`},
		{"Strict takes the first mention of a queue", core.StrictBy("C", "A", "C"), `
			1 1 1 > C
			1 1 - > A`},

		{"Weighted 3 to 1", core.WeightedBy(map[string]int{"A": 3, "B": 1}), `
			1 1 > A
			1 1 > A
			1 1 > B
			1 1 > A
			1 1 > A
			1 1 > A
			1 1 > B
			1 1 > A`},
		{"Weighted alike where no weights are given", core.WeightedBy(nil), `
			1 1 1 > A
			1 1 1 > B
			1 1 1 > C
			1 1 1 > A`},
		{"Weighted counts weights below 1 as 1", core.WeightedBy(map[string]int{"A": 0, "B": -5}), `
			1 1 > A
			1 1 > B
			1 1 > A`},
		{"Weighted gives the turns of idle shards to the others", core.WeightedBy(map[string]int{"A": 3}), `
			- 1 > B
			- 1 > B
			- 1 > B
			1 1 > A
			1 1 > A
			1 1 > B
			1 1 > A`},
		{"Weighted saves no turns up for an idle shard", core.WeightedBy(map[string]int{"A": 3}), `
			1 1 > A
			1 1 > A
			1 - > A
			1 1 > A
			1 1 > A
			1 1 > B`},
		{"Weighted waits if none is due", core.WeightedBy(map[string]int{"A": 3}), `
			11 - > wait
			10 - > A`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { transcript(t, tt.scheduler, tt.steps) })
	}
}

func TestStrictTakesTheShardsOfAQueueInOrder(t *testing.T) {
	shards := append(core.Shards("low", 2), core.Shards("high", 2)...)
	lane := core.StrictBy("high", "low")(core.SchedulerConfig{Shards: shards})
	due := []core.Head{{OK: true}, {OK: true}, {OK: true}, {OK: true}}
	for _, want := range []int{2, 3, 0, 1} {
		got := lane.Next(10, due).Index
		if got != want {
			t.Fatalf("chose %v, want %v", shards[got], shards[want])
		}
		due[got] = core.Head{}
	}
}

func TestWeightedSharesTurnsInProportion(t *testing.T) {
	weights := map[string]int{"A": 5, "B": 2, "C": 1}
	newScheduler := core.WeightedBy(weights)
	weights["A"] = 0
	lane := newScheduler(core.SchedulerConfig{Shards: queueEach(3)})
	var turns [3]int
	for range 80 {
		choice := lane.Next(10, []core.Head{{OK: true}, {OK: true}, {OK: true}})
		turns[choice.Index]++
		lane.Ran(choice.Index, true)
	}
	if want := [3]int{50, 20, 10}; turns != want {
		t.Errorf("turns %v, want %v", turns, want)
	}
}

func TestSchedulersWithoutShardsWait(t *testing.T) {
	for name, newScheduler := range map[string]core.SchedulerFunc{
		"Seq": core.Seq, "Lag": core.Lag, "Strict": core.StrictBy("A"), "Weighted": core.WeightedBy(nil),
	} {
		lane := newScheduler(core.SchedulerConfig{PollInterval: pollInterval})
		if choice := lane.Next(10, nil); choice.Index != -1 {
			t.Errorf("%s chose %d of no shards", name, choice.Index)
		}
	}
}

func TestHeadLag(t *testing.T) {
	tests := []struct {
		name string
		head core.Head
		due  bool
		lag  time.Duration
	}{
		{"none", core.Head{}, false, 0},
		{"due long since", core.Head{Due: 4_000_000, OK: true}, true, 6 * time.Second},
		{"due now", core.Head{Due: 10_000_000, OK: true}, true, 0},
		{"not due", core.Head{Due: 10_000_001, OK: true}, false, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if due, lag := tt.head.DueBy(10_000_000), tt.head.Lag(10_000_000); due != tt.due || lag != tt.lag {
				t.Errorf("due %v, lag %v; want %v, %v", due, lag, tt.due, tt.lag)
			}
		})
	}
}

func TestEarlierHead(t *testing.T) {
	none, soon, late := core.Head{}, core.Head{Due: 1, OK: true}, core.Head{Due: 2, OK: true}
	for _, c := range []struct{ a, b, want core.Head }{
		{none, none, none}, {none, late, late}, {late, none, late}, {soon, late, soon}, {late, soon, soon},
		{core.Head{Due: 0}, soon, soon},
	} {
		if got := c.a.Earlier(c.b); got != c.want {
			t.Errorf("%+v.Earlier(%+v) = %+v, want %+v", c.a, c.b, got, c.want)
		}
	}
}
