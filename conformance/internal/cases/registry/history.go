package registry

import (
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleRecord     = "Record: of several records of one owner, queue and minute, the one that has counted more stays"
	ruleHistory    = "History sums up a queue's records over all owners, by minute or by Step"
	ruleKept       = "History: minutes that began more than HistoryKept before the present one are not listed"
	ruleKeptLonger = "History: records of minutes that are not listed are kept for at least another hour, " +
		"so that a clock that is set back hides nothing"
	ruleIgnored = "Record ignores records of queues that were not declared, " +
		"of minutes that began more than HistoryKept before the present one, " +
		"and of minutes that begin more than an hour from now"
	ruleRecorded = "Record stores an owner's counts of queues, by minute"
)

func historyCases() []env.Case {
	return []env.Case{
		{Name: "sums up what owners have counted", Rule: ruleHistory, Check: historySums},
		{Name: "counts nothing twice", Rule: ruleRecord, Check: historyRepeats},
		{Name: "does not let a late record replace a newer one", Rule: ruleRecord, Check: historyLate},
		{Name: "keeps minutes, owners and queues apart", Rule: ruleRecorded, Check: historyApart},
		{Name: "accepts many records at once", Rule: ruleRecorded, Check: historyMany},
		{Name: "ignores a queue that was not declared", Rule: ruleIgnored, Check: historyUndeclared},
		{
			Name:  "lists minutes from From, before To, oldest first",
			Rule:  "History: from inclusive to exclusive, oldest first",
			Check: historyBounds,
		},
		{
			Name: "sums up the minutes of a step",
			Rule: "HistoryRequest: Entries begin at multiples of Step since the Unix epoch; " +
				"the minutes that From and To leave out are missing in the first and last",
			Check: historySteps,
		},
		{Name: "keeps 24 hours", Rule: ruleKept, Check: historyKeeps},
		{
			Name:  "keeps records an hour longer in case the clock is set back",
			Rule:  ruleKeptLonger,
			Check: historyOfAClockSetBack,
		},
		{Name: "ignores minutes far from the present", Rule: ruleIgnored, Check: historyFar},
		{Name: "is removed with its queue", Rule: env.RuleForget, Check: historyForgotten},
		{
			Name:  "refuses bad requests",
			Rule:  "RecordRequest.Validate, HistoryRequest.Validate: ErrInvalidRequest",
			Check: historyInvalid,
		},
	}
}

func historySums(e *env.Env) {
	e.History(ports.HistoryRequest{Queue: env.Orders})
	e.Record("n1", e.Recorded(env.Measured(3)))
	first := thisMinute(e, env.Measured(3))
	e.History(ports.HistoryRequest{Queue: env.Orders}, first)
	e.Record("n2", e.Recorded(env.Measured(5)))
	first = thisMinute(e, env.Measured(3), env.Measured(5))
	e.History(ports.HistoryRequest{Queue: env.Orders}, first)
	e.Clock.Advance(time.Minute)
	e.Record("n1", e.Recorded(env.Measured(7)))
	e.History(ports.HistoryRequest{Queue: env.Orders}, first, thisMinute(e, env.Measured(7)))
}

func historyRepeats(e *env.Env) {
	for range 3 {
		e.Record("n1", e.Recorded(env.Measured(3)))
	}
	e.History(ports.HistoryRequest{Queue: env.Orders}, thisMinute(e, env.Measured(3)))
	e.Record("n1", e.Recorded(env.Measured(4)))
	e.History(ports.HistoryRequest{Queue: env.Orders}, thisMinute(e, env.Measured(4)))
}

func historyLate(e *env.Env) {
	more := added(env.Measured(300), env.Measured(5))
	e.Record("n1", e.Recorded(&more))
	e.Record("n1", e.Recorded(env.Measured(300)))
	e.History(ports.HistoryRequest{Queue: env.Orders}, thisMinute(e, &more))

	late := e.Recorded(env.Measured(301))
	e.Clock.Advance(time.Minute)
	e.Record("n1", late, e.Recorded(env.Measured(1)))
	first := ports.MinuteStats{At: late.Minute, Stats: more}
	e.History(ports.HistoryRequest{Queue: env.Orders}, first, thisMinute(e, env.Measured(1)))

	more.Failed++ // counted late, in a minute that is over
	late.Stats, first.Stats = more, more
	e.Record("n1", late)
	e.History(ports.HistoryRequest{Queue: env.Orders}, first, thisMinute(e, env.Measured(1)))
}

func historyApart(e *env.Env) {
	e.Declare("order", 2)
	other := e.Recorded(env.Measured(9))
	other.Queue = "order"
	for i, owner := range []string{"n1", "n1 ", "1", "n11", "é"} {
		e.Record(owner, e.Recorded(env.Measured(uint64(i+1))))
	}
	e.Record("n1", other)
	e.History(ports.HistoryRequest{Queue: env.Orders},
		thisMinute(e, env.Measured(1), env.Measured(2), env.Measured(3), env.Measured(4), env.Measured(5)))
	e.History(ports.HistoryRequest{Queue: "order"}, thisMinute(e, env.Measured(9)))
}

func historyMany(e *env.Env) {
	e.Declare("wide", 3)
	e.Record("n1")

	var records []ports.Record
	want := map[string][]ports.MinuteStats{}
	for i := range ports.MaxRecords / 2 {
		for _, queue := range []string{env.Orders, "wide"} {
			at := e.Now().Minute().Add(-time.Duration(i) * time.Minute)
			s := core.Stats{Processed: uint64(i + len(queue))}
			records = append(records, ports.Record{Queue: queue, Minute: at, Stats: s})
			want[queue] = append(want[queue], ports.MinuteStats{At: at, Stats: s})
		}
	}

	e.Record("n1", records...)
	for queue, minutes := range want {
		slices.Reverse(minutes)
		e.History(ports.HistoryRequest{Queue: queue}, minutes...)
	}

	e.Record("n2", e.Recorded(env.Measured(2)), e.Recorded(env.Measured(3)), e.Recorded(env.Measured(1)))
	first := thisMinute(e, &core.Stats{Processed: uint64(len(env.Orders))}, env.Measured(3))
	e.History(ports.HistoryRequest{Queue: env.Orders, From: first.At}, first)
}

func historyUndeclared(e *env.Env) {
	r := e.Recorded(env.Measured(1))
	r.Queue = "nowhere"
	e.Record("n1", r, e.Recorded(env.Measured(2)))
	e.History(ports.HistoryRequest{Queue: env.Orders}, thisMinute(e, env.Measured(2)))
	_, err := e.Store.History(e.Ctx, ports.HistoryRequest{Queue: "nowhere"})
	e.Refused("History of an unknown queue", err, ports.ErrUnknownQueue)
	e.Declare("nowhere", 1)
	e.History(ports.HistoryRequest{Queue: "nowhere"})
}

func historyBounds(e *env.Env) {
	var all []ports.MinuteStats
	for n := uint64(1); n <= 4; n++ {
		e.Record("n1", e.Recorded(env.Measured(n)))
		all = append(all, thisMinute(e, env.Measured(n)))
		e.Clock.Advance(2 * time.Minute)
	}

	e.History(ports.HistoryRequest{Queue: env.Orders}, all...)
	e.History(ports.HistoryRequest{Queue: env.Orders, From: all[1].At, To: all[3].At}, all[1:3]...)
	e.History(ports.HistoryRequest{Queue: env.Orders, From: all[1].At + 1}, all[2:]...)
	e.History(ports.HistoryRequest{Queue: env.Orders, To: all[0].At + 1}, all[:1]...)
	e.History(ports.HistoryRequest{Queue: env.Orders, From: all[3].At + 1})
	e.History(ports.HistoryRequest{Queue: env.Orders, From: all[3].At, To: all[1].At})
}

func historySteps(e *env.Env) {
	hour := core.Instant(time.Hour.Microseconds())
	e.Clock.Set((e.Now() - e.Now()%hour + hour).Add(58 * time.Minute).Time())

	var all []*core.Stats
	begin := e.Now()

	for n := uint64(1); n <= 5; n++ { // at :58, :59, :00, :01 and :02
		e.Record("n1", e.Recorded(env.Measured(n)))
		e.Record("n2", e.Recorded(env.Measured(10*n)))
		sum := added(env.Measured(n), env.Measured(10*n))
		all = append(all, &sum)
		e.Clock.Advance(time.Minute)
	}

	next := begin.Add(2 * time.Minute)
	e.History(ports.HistoryRequest{Queue: env.Orders, Step: time.Minute, To: begin + 1},
		ports.MinuteStats{At: begin, Stats: *all[0]})
	e.History(ports.HistoryRequest{Queue: env.Orders, Step: 5 * time.Minute},
		ports.MinuteStats{At: next.Add(-5 * time.Minute), Stats: added(all[:2]...)},
		ports.MinuteStats{At: next, Stats: added(all[2:]...)})
	e.History(ports.HistoryRequest{Queue: env.Orders, Step: time.Hour, From: begin + 1, To: next.Add(2 * time.Minute)},
		ports.MinuteStats{At: next - hour, Stats: *all[1]}, ports.MinuteStats{At: next, Stats: added(all[2:4]...)})

	day := core.Instant(ports.HistoryKept.Microseconds())
	if next%day == 0 {
		return // the hour is the first of a day, so the history has two days
	}
	e.History(ports.HistoryRequest{Queue: env.Orders, Step: ports.HistoryKept},
		ports.MinuteStats{At: next - next%day, Stats: added(all...)})
}

func historyKeeps(e *env.Env) {
	e.Record("n1", e.Recorded(env.Measured(1)))
	first := thisMinute(e, env.Measured(1))

	e.Clock.Set(first.At.Add(ports.HistoryKept + time.Minute - time.Microsecond).Time())
	e.Record("n1", e.Recorded(env.Measured(2)))
	second := thisMinute(e, env.Measured(2))
	e.History(ports.HistoryRequest{Queue: env.Orders}, first, second)

	e.Clock.Advance(time.Microsecond)
	e.History(ports.HistoryRequest{Queue: env.Orders}, second)

	for range 3 {
		e.Clock.Advance(9 * time.Hour)
		e.Record("n1", e.Recorded(env.Measured(3)))
	}
	third := thisMinute(e, env.Measured(3))
	e.History(ports.HistoryRequest{Queue: env.Orders},
		ports.MinuteStats{At: third.At.Add(-18 * time.Hour), Stats: third.Stats},
		ports.MinuteStats{At: third.At.Add(-9 * time.Hour), Stats: third.Stats}, third)
}

func historyOfAClockSetBack(e *env.Env) {
	e.Record("n1", e.Recorded(env.Measured(1)))
	first := thisMinute(e, env.Measured(1))
	e.Clock.Set(first.At.Add(ports.HistoryKept + time.Hour).Time())
	e.Record("n1", e.Recorded(env.Measured(2)))
	second := thisMinute(e, env.Measured(2))
	e.History(ports.HistoryRequest{Queue: env.Orders}, second)
	e.Clock.Advance(-time.Hour)
	e.History(ports.HistoryRequest{Queue: env.Orders}, first, second)
}

func historyFar(e *env.Env) {
	at := e.Now().Minute()
	records := make([]ports.Record, 0, 4)
	for i, minute := range []core.Instant{
		at.Add(-ports.HistoryKept - time.Minute), at.Add(-ports.HistoryKept), at.Add(time.Hour),
		at.Add(time.Hour + time.Minute),
	} {
		records = append(records, ports.Record{Queue: env.Orders, Minute: minute, Stats: *env.Measured(uint64(i))})
	}

	e.Record("n1", records...)
	want := []ports.MinuteStats{
		{At: records[1].Minute, Stats: records[1].Stats}, {At: records[2].Minute, Stats: records[2].Stats},
	}
	e.History(ports.HistoryRequest{Queue: env.Orders}, want...)

	e.Clock.Advance(-2 * time.Minute) // the ignored record has not been stored
	e.History(ports.HistoryRequest{Queue: env.Orders}, want...)
}

func historyForgotten(e *env.Env) {
	e.Record("n1", e.Recorded(env.Measured(1)))
	e.Forget()
	e.Record("n1", e.Recorded(env.Measured(2)))
	e.Declare(env.Orders, 3)
	e.History(ports.HistoryRequest{Queue: env.Orders})
	e.Record("n1", e.Recorded(env.Measured(1)))
	e.History(ports.HistoryRequest{Queue: env.Orders}, thisMinute(e, env.Measured(1)))
}

func historyInvalid(e *env.Env) {
	refused := func(what string, r ports.RecordRequest) {
		e.TB.Helper()
		e.Refused("Record with "+what, e.Store.Record(e.Ctx, r), ports.ErrInvalidRequest)
	}

	good := e.Recorded(env.Measured(1))
	bad := good
	bad.Minute++

	refused("no owner", ports.RecordRequest{Records: []ports.Record{good}})
	refused("an instant within a minute", ports.RecordRequest{Owner: "n1", Records: []ports.Record{good, bad}})
	refused("too many records", ports.RecordRequest{Owner: "n1", Records: make([]ports.Record, ports.MaxRecords+1)})
	e.History(ports.HistoryRequest{Queue: env.Orders})

	for _, step := range []time.Duration{-time.Minute, time.Second, 90 * time.Second, ports.HistoryKept + time.Minute} {
		_, err := e.Store.History(e.Ctx, ports.HistoryRequest{Queue: env.Orders, Step: step})
		e.Refused("History with a step of "+step.String(), err, ports.ErrInvalidRequest)
	}
}

// added returns the sum of statistics.
func added(all ...*core.Stats) core.Stats {
	var sum core.Stats
	for _, s := range all {
		sum.Add(s)
	}
	return sum
}

// thisMinute returns the entry of the history for the present minute.
func thisMinute(e *env.Env, s ...*core.Stats) ports.MinuteStats {
	return ports.MinuteStats{At: e.Now().Minute(), Stats: added(s...)}
}
