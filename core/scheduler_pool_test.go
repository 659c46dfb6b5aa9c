package core_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
)

// poolTranscript shows a pool of shards A, B, C …, one of each queue. A step is "heads > choice" as
// in transcript, where "=" leaves a head as it is; "A ok" or "A failed" is the end of a batch of A,
// "A +3" charges A for 3 batches more, and "next 11" is the second that NextDue returns.
func poolTranscript(t *testing.T, newScheduler core.SchedulerFunc, steps string) {
	t.Helper()
	var s core.HeadScheduler
	for n, line := range strings.Split(strings.TrimSpace(steps), "\n") {
		heads, want, choice := strings.Cut(strings.TrimSpace(line), " > ")
		if !choice {
			poolEvent(t, s, strings.Fields(heads))
			continue
		}
		if s == nil {
			config := core.SchedulerConfig{Shards: queueEach(len(strings.Fields(heads))), PollInterval: pollInterval}
			s = newScheduler(config).(core.HeadScheduler)
		}
		for i, field := range strings.Fields(heads) {
			if field != "=" {
				s.SetHead(i, parseHeads(t, field)[0])
			}
		}
		if got := choiceText(s.Choose(10_000_000)); got != want {
			t.Fatalf("step %d: %s: chose %s", n, line, got)
		}
	}
}

func poolEvent(t *testing.T, s core.HeadScheduler, fields []string) {
	t.Helper()
	index := int(fields[0][0] - 'A')
	switch what := fields[1]; {
	case fields[0] == "next":
		if got, want := s.NextDue(), parseHeads(t, what)[0]; got != want {
			t.Fatalf("NextDue = %+v, want %+v", got, want)
		}
	case what == "ok" || what == "failed":
		s.Ran(index, what == "ok")
	default:
		n, err := strconv.Atoi(what)
		if err != nil {
			t.Fatal(err)
		}
		s.Charge(index, n)
	}
}

func TestSchedulersOfPools(t *testing.T) {
	threeToOne := core.WeightedBy(map[string]int{"A": 3, "B": 1})
	for _, tt := range []struct {
		name      string
		scheduler core.SchedulerFunc
		steps     string
	}{
		{"a shard is chosen once for each head that is set", core.Lag, `
			1 2 > A
			= = > B
			= = > wait
			= 3 > B
			4 3 > B
			= = > A`},
		{"the last head counts", core.Lag, `
			1 2 3 > A
			5 4 - > B
			= = 1 > C
			- = = > wait`},
		{"the next head is the earliest that is not due", core.Lag, `
			- 13 11 12 > wait
			next 11
			- = 10 = > C
			next 12
			- = 14 - > wait
			next 13
			- - - - > wait
			next -`},
		{"Lag takes equals in turn", core.Lag, `
			5 5 5 > A
			5 = = > B
			= 5 = > C
			= = 5 > A
			= = = > B`},
		{"Strict takes the oldest of a rank", core.StrictBy("C"), `
			2 1 3 > C
			= = 9 > C
			= = - > B
			= 2 - > A
			2 = 9 > C
			= = 11 > B`},
		{"Strict waits until it is known what a chosen shard has", core.StrictBy("C", "A"), `
			1 1 1 > C
			= = = > wait
			= = 11 > A
			= = = > wait
			- = = > B
			1 = 1 > C
			= = - > A`},
		{"Strict chooses several of a rank at once", core.StrictBy(), `
			1 2 3 > A
			= = = > B
			= = = > C
			= = = > wait`},

		{"Seq continues while batches run", core.Seq, `
			1 1 1 > A
			= = = > B
			1 1 = > C
			= = 1 > A
			1 = = > B`},
		{"Seq waits for a head while a batch runs", core.Seq, `
			1 - > A
			= - > wait
			A failed
			- - > sleep`},
		{"Seq sleeps when the last batch of a round has failed", core.Seq, `
			1 1 > A
			1 = > B
			B failed
			= 1 > A
			A failed
			- = > B
			B failed
			= - > wait
			A failed
			1 1 > sleep
			= = > A`},
		{"Seq continues for a round after a success of any batch", core.Seq, `
			1 1 > A
			1 = > B
			= 1 > A
			1 = > B
			B failed
			A ok
			A failed
			B failed
			= 1 > A
			A failed
			1 = > B
			B failed
			= 1 > sleep`},
		{"Seq visits a shard that is set late at its place", core.Seq, `
			1 1 1 > A
			= = = > B
			1 = = > C
			= = = > A
			1 1 1 > B
			= 1 = > C`},

		{"Weighted counts what was chosen as having work until its head is set", threeToOne, `
			1 1 > A
			= 1 > B
			1 1 > A
			1 = > A
			1 = > A
			1 = > A
			1 = > B`},
		{"Weighted saves no turns up for a shard whose head was set to none", threeToOne, `
			1 1 > A
			- 1 > B
			1 1 > A
			1 = > A
			1 = > B`},
		{"Weighted counts a choice for as many batches as it stood for", core.WeightedBy(nil), `
			1 1 > A
			A +3
			1 = > B
			= 1 > B
			= 1 > B
			= 1 > B
			= 1 > A`},
		{"Weighted takes back what a choice did not bring", core.WeightedBy(nil), `
			1 1 > A
			A +3
			A -3
			1 = > B
			= 1 > A`},
	} {
		t.Run(tt.name, func(t *testing.T) { poolTranscript(t, tt.scheduler, tt.steps) })
	}
}

func TestWhatWasDueStaysDueWhenTheClockGoesBack(t *testing.T) {
	for name, build := range map[string]core.SchedulerFunc{
		"Seq": core.Seq, "Lag": core.Lag, "Strict": core.StrictBy("B", "A"), "Weighted": core.WeightedBy(nil),
	} {
		s := build(core.SchedulerConfig{Shards: queueEach(2), PollInterval: time.Second}).(core.HeadScheduler)
		s.SetHead(0, core.Head{Due: 10, OK: true})
		s.SetHead(1, core.Head{Due: 9, OK: true})
		first := s.Choose(10).Index
		s.SetHead(first, core.Head{})
		if second := s.Choose(5).Index; first < 0 || second != 1-first {
			t.Errorf("%s chose %d at 10 and %d at 5, want both shards", name, first, second)
		}
	}
}

// TestWeightedNeverOverflows has choices stand for a number of batches with which virtual times
// would pass all bounds. A turn of A lasts 1<<40, since that of D, which never has work, is so
// short.
func TestWeightedNeverOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := queueEach(4)
		huge := map[string]int{"A": 1, "B": 2, "C": 3, "D": 1<<40 + 1}
		s := core.WeightedBy(huge)(core.SchedulerConfig{Shards: shards}).(core.HeadScheduler)
		naive := newNaivePool(len(shards), weighing(shards, multipleOf(shards, huge), huge))
		set := func(i int) {
			h := core.Head{OK: rapid.IntRange(0, 9).Draw(t, "due") > 0}
			s.SetHead(i, h)
			naive.setHead(i, h)
		}
		for range 300 {
			for i := range 3 {
				set(i)
			}
			got, want := s.Choose(10).Index, naive.choose(10).Index
			if got != want {
				t.Fatalf("chose %d, want %d", got, want)
			}
			if got >= 0 {
				n := rapid.IntRange(1<<17, 1<<18).Draw(t, "batches")
				s.Charge(got, n)
				naive.charge(got, n)
			}
		}
	})
}

func TestEachSchedulerOfAFuncHasStateOfItsOwn(t *testing.T) {
	for name, build := range map[string]core.SchedulerFunc{
		"Seq":      core.Seq,
		"Lag":      core.Lag,
		"Strict":   core.StrictBy("A"),
		"Weighted": core.WeightedBy(map[string]int{"A": 2}),
	} {
		config := core.SchedulerConfig{Shards: queueEach(3), PollInterval: time.Second}
		heads := []core.Head{{OK: true}, {OK: true}, {OK: true}}
		one, other := build(config), build(config)
		want := one.Next(10, heads)
		one.Next(10, heads)
		if got := other.Next(10, heads); got != want {
			t.Errorf("%s: another one chose %+v at first, want %+v", name, got, want)
		}
	}
}
