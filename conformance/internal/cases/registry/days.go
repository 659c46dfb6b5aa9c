package registry

import (
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleDays     = "HistoryRequest: the entries of a Day are whole days of UTC, each the sum of its minutes"
	ruleDaysOnce = "Record counts each minute of an owner in its day once, with the record that stays"
	ruleDaysKept = "History lists the days that began at most DaysKept days before the present one, " +
		"also when their minutes are no longer kept"
	ruleDaysJump = "Inspector.History: a store that keeps too many days removes the one that is farthest from " +
		"the present one, so a clock that jumps ahead costs no more than that"
)

func dayCases() []env.Case {
	return []env.Case{
		{Name: "sums up the minutes of each day", Rule: ruleDays, Check: daysSum},
		{Name: "counts each record once", Rule: ruleDaysOnce, Check: daysOnce},
		{Name: "sums up minutes that arrive together", Rule: ruleDays, Check: daysTogether},
		{
			Name: "lists each day with a part between From and To",
			Rule: "HistoryRequest: the entries of a Day are the days with a part between From and To, " +
				"and each is a whole day",
			Check: daysBounds,
		},
		{Name: "outlives the minutes, for 30 days", Rule: ruleDaysKept, Check: daysKeep},
		{Name: "lists a day again if the clock is set back", Rule: ruleDaysKept, Check: daysOfAClockSetBack},
		{Name: "loses no day to a clock that jumps ahead", Rule: ruleDaysJump, Check: daysOfAClockAhead},
		{
			Name: "counts no minute twice after a clock that jumped ahead",
			Rule: "Record counts no minute twice in its day, " +
				"also if the store removed its records when the clock had jumped ahead",
			Check: daysOfRemovedMinutes,
		},
		{
			Name:  "keeps queues apart, and is removed with its queue",
			Rule:  env.RuleForget,
			Check: daysForgotten,
		},
	}
}

// days checks the days of the queue orders.
func days(e *env.Env, want ...ports.MinuteStats) {
	e.TB.Helper()
	e.History(ports.HistoryRequest{Queue: env.Orders, Step: ports.Day}, want...)
}

// thisDay returns the entry of the history for the present day.
func thisDay(e *env.Env, s ...*core.Stats) ports.MinuteStats {
	return ports.MinuteStats{At: e.Now().Day(), Stats: added(s...)}
}

// toNextDay sets the clock to a time of the next day of UTC.
func toNextDay(e *env.Env, at time.Duration) {
	e.Clock.Set(e.Now().Day().Add(ports.Day + at).Time())
}

func daysSum(e *env.Env) {
	days(e)
	toNextDay(e, ports.Day-2*time.Minute)
	for n := uint64(1); n <= 2; n++ { // at 23:58 and 23:59
		e.Record("n1", e.Recorded(env.Measured(n)))
		e.Record("n2", e.Recorded(env.Measured(10*n)))
		if n == 1 {
			e.Clock.Advance(2*time.Minute - time.Microsecond)
		}
	}
	first := thisDay(e, env.Measured(1), env.Measured(2), env.Measured(10), env.Measured(20))
	days(e, first)

	e.Clock.Advance(time.Microsecond) // at 00:00
	days(e, first)
	e.Record("n1", e.Recorded(env.Measured(3)))
	days(e, first, thisDay(e, env.Measured(3)))

	e.Clock.Advance(23 * time.Hour)
	e.Record("n1", e.Recorded(env.Measured(4)))
	days(e, first, thisDay(e, env.Measured(3), env.Measured(4)))
}

func daysOnce(e *env.Env) {
	more := added(env.Measured(300), env.Measured(5))
	for range 2 {
		e.Record("n1", e.Recorded(env.Measured(300)))
	}
	days(e, thisDay(e, env.Measured(300)))

	e.Record("n2", e.Recorded(env.Measured(7)))
	e.Record("n1", e.Recorded(&more))
	e.Record("n1", e.Recorded(env.Measured(300)))
	days(e, thisDay(e, &more, env.Measured(7)))

	late := e.Recorded(env.Measured(300))
	e.Clock.Advance(time.Minute)
	e.Record("n1", late, e.Recorded(env.Measured(1)), e.Recorded(env.Measured(1)))
	want := added(&more, env.Measured(7), env.Measured(1))
	more.Failed++ // counted late, in a minute that is over
	want.Failed++
	late.Stats = more
	e.Record("n1", late)
	days(e, ports.MinuteStats{At: late.Minute.Day(), Stats: want})
}

func daysTogether(e *env.Env) {
	e.Declare("wide", 3)
	toNextDay(e, 4*time.Hour)

	var records []ports.Record
	want := map[string]*[2]core.Stats{env.Orders: {}, "wide": {}}
	for i := range ports.MaxRecords / 2 { // of eight hours, four of them yesterday
		for queue, sums := range want {
			at := e.Now().Add(-time.Duration(i) * time.Minute)
			s := *env.Measured(uint64(i%7 + len(queue)))
			records = append(records, ports.Record{Queue: queue, Minute: at, Stats: s})
			if at >= e.Now().Day() {
				sums[1].Add(&s)
			} else {
				sums[0].Add(&s)
			}
		}
	}

	for range 2 {
		e.Record("n1", records...)
		for queue, sums := range want {
			e.History(ports.HistoryRequest{Queue: queue, Step: ports.Day},
				ports.MinuteStats{At: e.Now().Day().Add(-ports.Day), Stats: sums[0]},
				ports.MinuteStats{At: e.Now().Day(), Stats: sums[1]})
		}
	}
}

func daysBounds(e *env.Env) {
	var all []ports.MinuteStats
	for n := uint64(1); n <= 4; n++ {
		toNextDay(e, 12*time.Hour)
		e.Record("n1", e.Recorded(env.Measured(n)))
		all = append(all, thisDay(e, env.Measured(n)))
	}

	noon := func(day int) core.Instant { return all[day].At.Add(12 * time.Hour) }
	for _, tt := range []struct {
		from, to core.Instant
		want     []ports.MinuteStats
	}{
		{all[1].At, all[3].At, all[1:3]},
		{all[1].At, all[3].At + 1, all[1:]},
		{noon(1), noon(2), all[1:3]},
		{noon(1) + 1, 0, all[1:]},
		{noon(3).Add(12*time.Hour - time.Microsecond), 0, all[3:]},
		{noon(3).Add(12 * time.Hour), 0, nil},
		{0, all[1].At, all[:1]},
		{noon(2), noon(1), nil},
	} {
		e.History(ports.HistoryRequest{Queue: env.Orders, From: tt.from, To: tt.to, Step: ports.Day}, tt.want...)
	}
}

func daysKeep(e *env.Env) {
	var all []ports.MinuteStats
	for n := range uint64(40) {
		toNextDay(e, time.Duration(n)*30*time.Minute)
		e.Record("n1", e.Recorded(env.Measured(n+1)))
		all = append(all, thisDay(e, env.Measured(n+1)))
	}
	days(e, all[len(all)-ports.DaysKept-1:]...)

	first := all[len(all)-ports.DaysKept-1]
	e.Clock.Set(first.At.Add((ports.DaysKept+1)*ports.Day - time.Microsecond).Time())
	days(e, all[len(all)-ports.DaysKept-1:]...)
	e.Clock.Advance(time.Microsecond)
	days(e, all[len(all)-ports.DaysKept:]...)

	e.Clock.Advance(5 * ports.Day) // in which nothing is recorded
	days(e, all[len(all)-ports.DaysKept+5:]...)
}

func daysOfAClockSetBack(e *env.Env) {
	toNextDay(e, 0)
	e.Record("n1", e.Recorded(env.Measured(1)))
	first := thisDay(e, env.Measured(1))
	want := []ports.MinuteStats{first}
	for n := range uint64(ports.DaysKept) {
		toNextDay(e, 0)
		e.Record("n1", e.Recorded(env.Measured(n)))
		want = append(want, thisDay(e, env.Measured(n)))
	}
	days(e, want...)

	toNextDay(e, 0)
	ahead := e.Recorded(env.Measured(9))
	e.Record("n1", ahead)
	days(e, append(want[1:len(want):len(want)], thisDay(e, env.Measured(9)))...)
	e.Clock.Advance(-time.Hour)
	days(e, append(want, ports.MinuteStats{At: ahead.Minute, Stats: ahead.Stats})...)
}

func daysOfAClockAhead(e *env.Env) {
	var all []ports.MinuteStats
	for n := range uint64(ports.DaysKept + 1) {
		toNextDay(e, 0)
		e.Record("n1", e.Recorded(env.Measured(n+1)))
		all = append(all, thisDay(e, env.Measured(n+1)))
	}

	now := e.Now()
	for range 2 {
		e.Clock.Set(now.Add(1000 * ports.Day).Time())
		e.Record("n1", e.Recorded(env.Measured(7)))
		days(e, thisDay(e, env.Measured(7)))
		e.Clock.Set(now.Time())
	}
	e.History(ports.HistoryRequest{Queue: env.Orders, To: now + 1, Step: ports.Day}, all...)

	// The day of the wrong clock costs no other that is listed.
	for n := range uint64(5) {
		toNextDay(e, 0)
		e.Record("n1", e.Recorded(env.Measured(n+1)))
		all = append(all[1:], thisDay(e, env.Measured(n+1)))
	}
	e.History(ports.HistoryRequest{Queue: env.Orders, To: e.Now() + 1, Step: ports.Day}, all...)
}

func daysOfRemovedMinutes(e *env.Env) {
	toNextDay(e, 12*time.Hour)
	e.Record("n1", e.Recorded(env.Measured(3)))
	first := e.Recorded(env.Measured(3))

	// Several times of a later day, so that a store that removes some records with each call has removed
	// the first one.
	for range 3 {
		for _, hours := range []time.Duration{27, 54, 100} {
			e.Clock.Set(first.Minute.Add(hours * time.Hour).Time())
			e.Record("n2", e.Recorded(env.Measured(1)))
		}
	}

	e.Clock.Set(first.Minute.Add(time.Second).Time())
	e.Record("n1", first)
	e.History(ports.HistoryRequest{Queue: env.Orders, To: first.Minute + 1, Step: ports.Day}, thisDay(e, env.Measured(3)))

	e.Clock.Advance(time.Hour)
	e.Record("n1", e.Recorded(env.Measured(5)))
	e.History(ports.HistoryRequest{Queue: env.Orders, To: first.Minute + 1, Step: ports.Day},
		thisDay(e, env.Measured(3), env.Measured(5)))
}

func daysForgotten(e *env.Env) {
	e.Declare("order", 2)
	other := e.Recorded(env.Measured(9))
	other.Queue = "order"
	e.Record("n1", e.Recorded(env.Measured(1)), other)
	days(e, thisDay(e, env.Measured(1)))
	e.History(ports.HistoryRequest{Queue: "order", Step: ports.Day}, thisDay(e, env.Measured(9)))

	e.Forget()
	_, err := e.Store.History(e.Ctx, ports.HistoryRequest{Queue: env.Orders, Step: ports.Day})
	e.Refused("History of a forgotten queue", err, ports.ErrUnknownQueue)
	e.Declare(env.Orders, 3)
	days(e)
	e.Record("n1", e.Recorded(env.Measured(2)))
	days(e, thisDay(e, env.Measured(2)))
	e.History(ports.HistoryRequest{Queue: "order", Step: ports.Day}, thisDay(e, env.Measured(9)))
}
