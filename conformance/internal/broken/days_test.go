package broken

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenDays() []brokenStore {
	return []brokenStore{
		{"begins days at noon", "days/sums up the minutes of each day", wrapped(daysOf(dayRule{begin: 12 * time.Hour}))},
		{"forgets days with their minutes", "days/outlives the minutes, for 30 days", wrapped(daysOfMinutes)},
		{"counts a repeated record in its day", "days/counts each record once", wrapped(daysOf(dayRule{again: true}))},
		{"does not correct a day", "days/counts each record once", wrapped(daysOf(dayRule{first: true}))},
		{
			"counts one record of a call in each day",
			"days/sums up minutes that arrive together",
			wrapped(daysOf(dayRule{one: true})),
		},
		{
			"leaves out a day of which From leaves out a part",
			"days/lists each day with a part between From and To",
			wrapped(daysOf(dayRule{cut: true})),
		},
		{"lists all days", "days/outlives the minutes, for 30 days", wrapped(daysOf(dayRule{all: true}))},
		{"removes days at once", "days/lists a day again if the clock is set back",
			wrapped(daysOf(dayRule{kept: ports.DaysKept}))},
		{
			"removes days by a clock that jumps ahead",
			"days/loses no day to a clock that jumps ahead",
			wrapped(daysOf(dayRule{kept: 100})),
		},
		{
			"counts a removed minute in its day again",
			"days/counts no minute twice after a clock that jumped ahead",
			wrapped(daysOf(dayRule{forgetful: true})),
		},
		{
			"keeps the days of a forgotten queue",
			"days/keeps queues apart, and is removed with its queue",
			wrapped(daysOf(dayRule{})),
		},
	}
}

// dayRule is how a store differs from what it should count by day.
type dayRule struct {
	// begin is when a day begins.
	begin time.Duration
	// again is true if a repeated record counts again, first if a minute's later records don't count,
	// and one if only one record of a call counts in each day.
	again, first, one bool
	// cut is true if a day must begin after From, and all if no day is too old to be listed.
	cut, all bool
	// kept is after how many days a day is removed, 0 for none.
	kept int
	// forgetful is true if the records of old minutes are removed without a trace.
	forgetful bool
}

// daysOf returns a wrapper that makes a store count days by a rule. It never forgets a queue.
func daysOf(rule dayRule) func(full) full {
	type minuteKey struct {
		owner, queue string
		minute       core.Instant
	}
	type dayKey struct {
		queue string
		day   core.Instant
	}
	start := func(at core.Instant) core.Instant { return at.Add(-rule.begin).Day().Add(rule.begin) }

	return func(s full) full {
		minutes, days := map[minuteKey]core.Stats{}, map[dayKey]*core.Stats{}

		record := func(k minuteKey, stats core.Stats, now core.Instant) {
			known, ok := minutes[k]
			if stats.Counted() < known.Counted() || stats.Counted() == known.Counted() && !rule.again || ok && rule.first {
				return
			}
			if rule.again && stats.Counted() == known.Counted() {
				known = core.Stats{}
			}

			day := dayKey{k.queue, start(k.minute)}
			if days[day] == nil {
				days[day] = &core.Stats{}
			}
			days[day].Add(&stats)
			days[day].Subtract(&known)
			minutes[k] = stats
			for other := range minutes {
				if rule.forgetful && other.minute < now.Add(-2*ports.Day) {
					delete(minutes, other)
				}
			}
			for other := range days {
				if rule.kept > 0 && other.day < now.Day().Add(-time.Duration(rule.kept)*ports.Day) {
					delete(days, other)
				}
			}
		}

		recording := replaceErr(s, "Record", func(ctx context.Context, r ports.RecordRequest) error {
			now, err := clockOf(ctx, s)
			if err != nil {
				return err
			}
			counted := map[dayKey]bool{}
			for _, one := range r.Records {
				day := dayKey{one.Queue, start(one.Minute)}
				if !rule.one || !counted[day] {
					record(minuteKey{r.Owner, one.Queue, one.Minute}, one.Stats, now)
				}
				counted[day] = true
			}
			return s.Record(ctx, r)
		})

		return replace(recording, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
			reply, err := s.History(ctx, r)
			if err != nil || r.Step != ports.Day {
				return reply, err
			}
			now, err := clockOf(ctx, s)
			if err != nil {
				return reply, err
			}

			from := max(start(max(0, r.From)), now.Day().Add(-ports.DaysKept*ports.Day))
			switch {
			case rule.cut:
				from = max(from, r.From)
			case rule.all:
				from = 0
			}
			reply.Minutes = nil
			for k, stats := range days {
				if k.queue == r.Queue && k.day >= from && (r.To == 0 || k.day < r.To) && stats.Counted() > 0 {
					reply.Minutes = append(reply.Minutes, ports.MinuteStats{At: k.day, Stats: *stats})
				}
			}
			slices.SortFunc(reply.Minutes, func(a, b ports.MinuteStats) int { return cmp.Compare(a.At, b.At) })
			return reply, nil
		})
	}
}

// clockOf returns the clock of a store.
func clockOf(ctx context.Context, s full) (core.Instant, error) {
	reply, err := s.Nodes(ctx)
	return reply.Now, err
}

// daysOfMinutes sums up days from the minutes that it still lists.
func daysOfMinutes(s full) full {
	return replace(s, "History", func(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
		asked := r
		if r.Step == ports.Day {
			asked.Step, asked.From = 0, 0
		}
		reply, err := s.History(ctx, asked)
		if err != nil || r.Step != ports.Day {
			return reply, err
		}

		var all []ports.MinuteStats
		for _, m := range reply.Minutes {
			if last := len(all) - 1; last < 0 || all[last].At != m.At.Day() {
				all = append(all, ports.MinuteStats{At: m.At.Day()})
			}
			all[len(all)-1].Add(&m.Stats)
		}
		reply.Minutes = all
		return reply, nil
	})
}
