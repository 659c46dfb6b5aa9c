package conformance

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleRecord     = "Record: of several records of one owner, queue and minute, the one that has counted more stays"
	ruleHistory    = "History sums up a queue's records over all owners, by minute or by Step"
	ruleKept       = "History: minutes that began more than HistoryKept before the present one are not listed"
	ruleKeptLonger = "History: records of minutes that are not listed are kept for at least another hour, so that a clock that is set back hides nothing"
	ruleIgnored    = "Record ignores records of queues that were not declared, of minutes that began more than HistoryKept before the present one, and of minutes that begin more than an hour from now"
	ruleRecorded   = "Record stores an owner's counts of queues, by minute"
)

func historyCases() []namedCase {
	return []namedCase{
		{"sums up what owners have counted", ruleHistory, historySums},
		{"counts nothing twice", ruleRecord, historyRepeats},
		{"does not let a late record replace a newer one", ruleRecord, historyLate},
		{"keeps minutes, owners and queues apart", ruleRecorded, historyApart},
		{"accepts many records at once", ruleRecorded, historyMany},
		{"ignores a queue that was not declared", ruleIgnored, historyUndeclared},
		{"lists minutes from From, before To, oldest first", "History: from inclusive to exclusive, oldest first", historyBounds},
		{"sums up the minutes of a step", "HistoryRequest: Entries begin at multiples of Step since the Unix epoch; the minutes that From and To leave out are missing in the first and last", historySteps},
		{"keeps 24 hours", ruleKept, historyKeeps},
		{"keeps records an hour longer in case the clock is set back", ruleKeptLonger, historyOfAClockSetBack},
		{"ignores minutes far from the present", ruleIgnored, historyFar},
		{"is removed with its queue", ruleForget, historyForgotten},
		{"refuses bad requests", "RecordRequest.Validate, HistoryRequest.Validate: ErrInvalidRequest", historyInvalid},
	}
}

// recorded returns a record of the queue orders in the present minute.
func (e *env) recorded(s *core.Stats) ports.Record {
	return ports.Record{Queue: orders, Minute: e.now().Minute(), Stats: *s}
}

// record records an owner's counts.
func (e *env) record(owner string, records ...ports.Record) {
	e.tb.Helper()
	e.must(e.store.Record(e.ctx, ports.RecordRequest{Owner: owner, Records: records}), "Record")
}

// measured returns statistics with a value in every kind of field. Their sums are exact.
func measured(n uint64) *core.Stats {
	s := &core.Stats{Processed: n, Failed: n + 1}
	s.ObserveWait(time.Duration(n) * 250 * time.Millisecond)
	s.ObserveRun(time.Duration(n) * time.Second)
	s.ObserveRun(1 << 20 * time.Second)
	return s
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
func (e *env) thisMinute(s ...*core.Stats) ports.MinuteStats {
	return ports.MinuteStats{At: e.now().Minute(), Stats: added(s...)}
}

func historySums(e *env) {
	e.history(ports.HistoryRequest{Queue: orders})
	e.record("n1", e.recorded(measured(3)))
	first := e.thisMinute(measured(3))
	e.history(ports.HistoryRequest{Queue: orders}, first)
	e.record("n2", e.recorded(measured(5)))
	first = e.thisMinute(measured(3), measured(5))
	e.history(ports.HistoryRequest{Queue: orders}, first)
	e.clock.Advance(time.Minute)
	e.record("n1", e.recorded(measured(7)))
	e.history(ports.HistoryRequest{Queue: orders}, first, e.thisMinute(measured(7)))
}

func historyRepeats(e *env) {
	for range 3 {
		e.record("n1", e.recorded(measured(3)))
	}
	e.history(ports.HistoryRequest{Queue: orders}, e.thisMinute(measured(3)))
	e.record("n1", e.recorded(measured(4)))
	e.history(ports.HistoryRequest{Queue: orders}, e.thisMinute(measured(4)))
}

func historyLate(e *env) {
	more := added(measured(300), measured(5))
	e.record("n1", e.recorded(&more))
	e.record("n1", e.recorded(measured(300)))
	e.history(ports.HistoryRequest{Queue: orders}, e.thisMinute(&more))
	late := e.recorded(measured(301))
	e.clock.Advance(time.Minute)
	e.record("n1", late, e.recorded(measured(1)))
	first := ports.MinuteStats{At: late.Minute, Stats: more}
	e.history(ports.HistoryRequest{Queue: orders}, first, e.thisMinute(measured(1)))
	more.Failed++ // counted late, in a minute that is over
	late.Stats, first.Stats = more, more
	e.record("n1", late)
	e.history(ports.HistoryRequest{Queue: orders}, first, e.thisMinute(measured(1)))
}

func historyApart(e *env) {
	e.declare("order", 2)
	other := e.recorded(measured(9))
	other.Queue = "order"
	for i, owner := range []string{"n1", "n1 ", "1", "n11", "é"} {
		e.record(owner, e.recorded(measured(uint64(i+1))))
	}
	e.record("n1", other)
	e.history(ports.HistoryRequest{Queue: orders},
		e.thisMinute(measured(1), measured(2), measured(3), measured(4), measured(5)))
	e.history(ports.HistoryRequest{Queue: "order"}, e.thisMinute(measured(9)))
}

func historyMany(e *env) {
	e.declare("wide", 3)
	e.record("n1")
	var records []ports.Record
	want := map[string][]ports.MinuteStats{}
	for i := range ports.MaxRecords / 2 {
		for _, queue := range []string{orders, "wide"} {
			at := e.now().Minute().Add(-time.Duration(i) * time.Minute)
			s := core.Stats{Processed: uint64(i + len(queue))}
			records = append(records, ports.Record{Queue: queue, Minute: at, Stats: s})
			want[queue] = append(want[queue], ports.MinuteStats{At: at, Stats: s})
		}
	}
	e.record("n1", records...)
	for queue, minutes := range want {
		slices.Reverse(minutes)
		e.history(ports.HistoryRequest{Queue: queue}, minutes...)
	}
	e.record("n2", e.recorded(measured(2)), e.recorded(measured(3)), e.recorded(measured(1)))
	first := e.thisMinute(&core.Stats{Processed: uint64(len(orders))}, measured(3))
	e.history(ports.HistoryRequest{Queue: orders, From: first.At}, first)
}

func historyUndeclared(e *env) {
	r := e.recorded(measured(1))
	r.Queue = "nowhere"
	e.record("n1", r, e.recorded(measured(2)))
	e.history(ports.HistoryRequest{Queue: orders}, e.thisMinute(measured(2)))
	_, err := e.store.History(e.ctx, ports.HistoryRequest{Queue: "nowhere"})
	e.refused("History of an unknown queue", err, ports.ErrUnknownQueue)
	e.declare("nowhere", 1)
	e.history(ports.HistoryRequest{Queue: "nowhere"})
}

func historyBounds(e *env) {
	var all []ports.MinuteStats
	for n := uint64(1); n <= 4; n++ {
		e.record("n1", e.recorded(measured(n)))
		all = append(all, e.thisMinute(measured(n)))
		e.clock.Advance(2 * time.Minute)
	}
	e.history(ports.HistoryRequest{Queue: orders}, all...)
	e.history(ports.HistoryRequest{Queue: orders, From: all[1].At, To: all[3].At}, all[1:3]...)
	e.history(ports.HistoryRequest{Queue: orders, From: all[1].At + 1}, all[2:]...)
	e.history(ports.HistoryRequest{Queue: orders, To: all[0].At + 1}, all[:1]...)
	e.history(ports.HistoryRequest{Queue: orders, From: all[3].At + 1})
	e.history(ports.HistoryRequest{Queue: orders, From: all[3].At, To: all[1].At})
}

func historySteps(e *env) {
	hour := core.Instant(time.Hour.Microseconds())
	e.clock.Set((e.now() - e.now()%hour + hour).Add(58 * time.Minute).Time())
	var all []*core.Stats
	begin := e.now()
	for n := uint64(1); n <= 5; n++ { // at :58, :59, :00, :01 and :02
		e.record("n1", e.recorded(measured(n)))
		e.record("n2", e.recorded(measured(10*n)))
		sum := added(measured(n), measured(10*n))
		all = append(all, &sum)
		e.clock.Advance(time.Minute)
	}
	next := begin.Add(2 * time.Minute)
	e.history(ports.HistoryRequest{Queue: orders, Step: time.Minute, To: begin + 1}, ports.MinuteStats{At: begin, Stats: *all[0]})
	e.history(ports.HistoryRequest{Queue: orders, Step: 5 * time.Minute},
		ports.MinuteStats{At: next.Add(-5 * time.Minute), Stats: added(all[:2]...)}, ports.MinuteStats{At: next, Stats: added(all[2:]...)})
	e.history(ports.HistoryRequest{Queue: orders, Step: time.Hour, From: begin + 1, To: next.Add(2 * time.Minute)},
		ports.MinuteStats{At: next - hour, Stats: *all[1]}, ports.MinuteStats{At: next, Stats: added(all[2:4]...)})
	day := core.Instant(ports.HistoryKept.Microseconds())
	if next%day == 0 {
		return // the hour is the first of a day, so the history has two days
	}
	e.history(ports.HistoryRequest{Queue: orders, Step: ports.HistoryKept}, ports.MinuteStats{At: next - next%day, Stats: added(all...)})
}

func historyKeeps(e *env) {
	e.record("n1", e.recorded(measured(1)))
	first := e.thisMinute(measured(1))
	e.clock.Set(first.At.Add(ports.HistoryKept + time.Minute - time.Microsecond).Time())
	e.record("n1", e.recorded(measured(2)))
	second := e.thisMinute(measured(2))
	e.history(ports.HistoryRequest{Queue: orders}, first, second)
	e.clock.Advance(time.Microsecond)
	e.history(ports.HistoryRequest{Queue: orders}, second)
	for range 3 {
		e.clock.Advance(9 * time.Hour)
		e.record("n1", e.recorded(measured(3)))
	}
	third := e.thisMinute(measured(3))
	e.history(ports.HistoryRequest{Queue: orders},
		ports.MinuteStats{At: third.At.Add(-18 * time.Hour), Stats: third.Stats},
		ports.MinuteStats{At: third.At.Add(-9 * time.Hour), Stats: third.Stats}, third)
}

func historyOfAClockSetBack(e *env) {
	e.record("n1", e.recorded(measured(1)))
	first := e.thisMinute(measured(1))
	e.clock.Set(first.At.Add(ports.HistoryKept + time.Hour).Time())
	e.record("n1", e.recorded(measured(2)))
	second := e.thisMinute(measured(2))
	e.history(ports.HistoryRequest{Queue: orders}, second)
	e.clock.Advance(-time.Hour)
	e.history(ports.HistoryRequest{Queue: orders}, first, second)
}

func historyFar(e *env) {
	at := e.now().Minute()
	records := make([]ports.Record, 0, 4)
	for i, minute := range []core.Instant{
		at.Add(-ports.HistoryKept - time.Minute), at.Add(-ports.HistoryKept), at.Add(time.Hour), at.Add(time.Hour + time.Minute),
	} {
		records = append(records, ports.Record{Queue: orders, Minute: minute, Stats: *measured(uint64(i))})
	}
	e.record("n1", records...)
	want := []ports.MinuteStats{{At: records[1].Minute, Stats: records[1].Stats}, {At: records[2].Minute, Stats: records[2].Stats}}
	e.history(ports.HistoryRequest{Queue: orders}, want...)
	e.clock.Advance(-2 * time.Minute) // the ignored record has not been stored
	e.history(ports.HistoryRequest{Queue: orders}, want...)
}

func historyForgotten(e *env) {
	e.record("n1", e.recorded(measured(1)))
	e.forget()
	e.record("n1", e.recorded(measured(2)))
	e.declare(orders, 3)
	e.history(ports.HistoryRequest{Queue: orders})
	e.record("n1", e.recorded(measured(1)))
	e.history(ports.HistoryRequest{Queue: orders}, e.thisMinute(measured(1)))
}

func historyInvalid(e *env) {
	refused := func(what string, r ports.RecordRequest) {
		e.tb.Helper()
		e.refused("Record with "+what, e.store.Record(e.ctx, r), ports.ErrInvalidRequest)
	}
	good := e.recorded(measured(1))
	bad := good
	bad.Minute++
	refused("no owner", ports.RecordRequest{Records: []ports.Record{good}})
	refused("an instant within a minute", ports.RecordRequest{Owner: "n1", Records: []ports.Record{good, bad}})
	refused("too many records", ports.RecordRequest{Owner: "n1", Records: make([]ports.Record, ports.MaxRecords+1)})
	e.history(ports.HistoryRequest{Queue: orders})
	for _, step := range []time.Duration{-time.Minute, time.Second, 90 * time.Second, ports.HistoryKept + time.Minute} {
		_, err := e.store.History(e.ctx, ports.HistoryRequest{Queue: orders, Step: step})
		e.refused("History with a step of "+step.String(), err, ports.ErrInvalidRequest)
	}
}
