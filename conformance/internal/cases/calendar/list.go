package calendar

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	ruleLists = "Schedules pages through the schedules of a queue, in order of (Name, ID)"
	ruleNames = "ScheduleNames pages through the different names of the schedules of a queue, in order, " +
		"with the number of schedules of each"
)

func listCases() []env.Case {
	return []env.Case{
		{Name: "are listed by name and id", Rule: ruleLists, Check: listOrder},
		{Name: "are listed in pages", Rule: ruleLists, Check: listPages},
		{Name: "are listed of an id or a name", Rule: "SchedulesRequest: ID and Name limit the list", Check: listOf},
		{
			Name:  "are listed of some shards",
			Rule:  "SchedulesRequest.Shards: nil means all shards, an empty list means no shard",
			Check: listShards,
		},
		{Name: "are counted by name", Rule: ruleNames, Check: listNames},
		{Name: "are counted in pages", Rule: ruleNames, Check: listNamePages},
		{Name: "are counted until the last is removed", Rule: ruleNames, Check: listNamesRemoved},
		{Name: "are counted though a removal finds none", Rule: ruleNames, Check: listNamesAfterNoRemoval},
		{
			Name:  "refuse a bad list",
			Rule:  "SchedulesRequest.Validate, ScheduleNamesRequest.Validate, ErrUnknownQueue",
			Check: listInvalid,
		},
	}
}

// crowd declares the queue mail with three shards, and stores schedules of each name for each id.
// It returns them in order of (Name, ID).
func crowd(e *env.Env, ids, names []string) []core.Schedule {
	e.TB.Helper()
	e.Declare("mail", 3)

	var all []core.Schedule
	for _, id := range ids {
		for i, name := range names {
			s := nightly(id, env.Start.Add(-1000*1000))
			s.Name, s.Next = name, s.Next+core.Instant(i)
			createAt(e, core.Shard{Queue: "mail", Index: core.ShardOf(id, 3)}, s)
			all = append(all, s)
		}
	}

	slices.SortFunc(all, func(a, b core.Schedule) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})

	return all
}

// names lists the names of a queue with their counts.
func names(e *env.Env, r ports.ScheduleNamesRequest, want ...ports.ScheduleName) {
	e.TB.Helper()

	var all []ports.ScheduleName
	for {
		page, err := e.Store.ScheduleNames(e.Ctx, r)
		e.Must(err, "ScheduleNames")
		e.Same("the time of a page", page.Now, e.Now())
		all = append(all, page.Names...)
		if page.Next == "" {
			break
		}
		r.After = page.Next
	}

	e.Same("the names", all, want)
}

func listOrder(e *env.Env) {
	all := crowd(e, []string{"10", "9", "B", "a", "a b", "é", "a-", "1"}, []string{"a", "a-b", "ab", "B", "a.b"})
	e.Same("the schedules", list(e, ports.SchedulesRequest{Queue: "mail"}), all)
}

func listPages(e *env.Env) {
	all := crowd(e, []string{"1", "10", "2", "a", "b"}, []string{"x", "x-y"})
	for _, limit := range []int{1, 3, 4, 9, 10, 11} {
		var pages, got []core.Schedule
		r := ports.SchedulesRequest{Queue: "mail", Limit: limit}
		for n := 0; ; n++ {
			page, err := e.Store.Schedules(e.Ctx, r)
			e.Must(err, "Schedules")
			got = append(got, page.Schedules...)
			pages = page.Schedules
			if page.Next == (core.ScheduleKey{}) {
				e.Same(fmt.Sprint("how many pages of ", limit), n, (len(all)-1)/limit)
				break
			}

			e.Same("the size of a page", len(pages), limit)
			e.Same("the cursor", page.Next, pages[len(pages)-1].ScheduleKey)
			r.After = page.Next
		}
		e.Same("the schedules by pages", got, all)
	}

	many := createMany(e, ports.MaxSchedulesPage+1, env.Start)
	page, err := e.Store.Schedules(e.Ctx, ports.SchedulesRequest{Queue: env.Orders, Limit: 1000})
	e.Must(err, "Schedules")
	e.Same("the largest page", page.Schedules, many[:ports.MaxSchedulesPage])
}

func listOf(e *env.Env) {
	all := crowd(e, []string{"1", "10", "11", "a"}, []string{"x", "xy", "x-y"})

	of := func(id, name string) (some []core.Schedule) {
		for _, s := range all {
			if (id == "" || s.ID == id) && (name == "" || s.Name == name) {
				some = append(some, s)
			}
		}
		return some
	}

	for _, id := range []string{"", "1", "10", "nobody"} {
		for _, name := range []string{"", "x", "xy", "z"} {
			for _, limit := range []int{0, 1} {
				got := list(e, ports.SchedulesRequest{Queue: "mail", ID: id, Name: name, Limit: limit})
				e.Same(fmt.Sprintf("the schedules %q of id %q by %d", name, id, limit), got, of(id, name))
			}
		}
	}
}

func listShards(e *env.Env) {
	all := crowd(e, []string{"1", "2", "3", "4", "5", "6"}, []string{"x"})
	for _, shards := range [][]int{{}, {1}, {2, 0}, {0, 0, 1, 2}} {
		var want []core.Schedule
		for _, s := range all {
			if slices.Contains(shards, core.ShardOf(s.ID, 3)) {
				want = append(want, s)
			}
		}

		page, err := e.Store.Schedules(e.Ctx, ports.SchedulesRequest{Queue: "mail", Shards: shards})
		e.Must(err, "Schedules")
		e.Same(fmt.Sprint("the schedules of shards ", shards), page.Schedules, want)

		counted, err := e.Store.ScheduleNames(e.Ctx, ports.ScheduleNamesRequest{Queue: "mail", Shards: shards})
		e.Must(err, "ScheduleNames")
		if len(want) > 0 {
			e.Same(fmt.Sprint("the names of shards ", shards), counted.Names,
				[]ports.ScheduleName{{Name: "x", Count: int64(len(want)), First: want[0]}})
		}
	}
}

func listNames(e *env.Env) {
	names(e, ports.ScheduleNamesRequest{Queue: env.Orders})
	all := crowd(e, []string{"1", "10", "2", "a"}, []string{"x", "x-y", "xy"})
	single := nightly("b", core.MaxInstant)
	single.Paused = true
	createAt(e, core.Shard{Queue: "mail", Index: core.ShardOf("b", 3)}, single)
	names(e, ports.ScheduleNamesRequest{Queue: "mail"},
		ports.ScheduleName{Name: "nightly", Count: 1, First: single},
		ports.ScheduleName{Name: "x", Count: 4, First: all[0]},
		ports.ScheduleName{Name: "x-y", Count: 4, First: all[4]},
		ports.ScheduleName{Name: "xy", Count: 4, First: all[8]},
	)

	at := core.Shard{Queue: "mail", Index: core.ShardOf("1", 3)}
	results, _ := change(e, requestAt(e, at, ports.ScheduleChange{ScheduleKey: key("1", "x"), Revision: 1}))
	e.Same("the result of a removal", results, []ports.ScheduleResult{ports.ScheduleChanged})
	names(e, ports.ScheduleNamesRequest{Queue: "mail", After: "nightly", Limit: 100},
		ports.ScheduleName{Name: "x", Count: 3, First: all[1]},
		ports.ScheduleName{Name: "x-y", Count: 4, First: all[4]},
		ports.ScheduleName{Name: "xy", Count: 4, First: all[8]},
	)
}

func listNamePages(e *env.Env) {
	all := crowd(e, []string{"1", "2", "3"}, []string{"a", "b", "b-", "b-c", "c"})
	var want []ports.ScheduleName
	for i := 0; i < len(all); i += 3 {
		want = append(want, ports.ScheduleName{Name: all[i].Name, Count: 3, First: all[i]})
	}
	for _, limit := range []int{1, 2, 4, 5, 6} {
		names(e, ports.ScheduleNamesRequest{Queue: "mail", Limit: limit}, want...)
		page, err := e.Store.ScheduleNames(e.Ctx, ports.ScheduleNamesRequest{Queue: "mail", Limit: limit})
		e.Must(err, "ScheduleNames")
		e.Same("the size of a page", len(page.Names), min(limit, len(want)))
	}
}

func listNamesRemoved(e *env.Env) {
	a, b, other := nightly("a", env.Start), nightly("b", env.Start), nightly("a", env.Start)
	other.Name = "weekly"
	create(e, a, b, other)
	weekly := ports.ScheduleName{Name: "weekly", Count: 1, First: other}
	remove := func(s core.Schedule, want ...ports.ScheduleName) {
		results, _ := change(e, request(e, ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: s.Revision}))
		e.Same("the result of a removal", results, []ports.ScheduleResult{ports.ScheduleChanged})
		names(e, ports.ScheduleNamesRequest{Queue: env.Orders}, want...)
	}

	remove(a, ports.ScheduleName{Name: "nightly", Count: 1, First: b}, weekly)
	remove(b, weekly)
	remove(other)
}

func listNamesAfterNoRemoval(e *env.Env) {
	a, absent := nightly("a", env.Start), nightly("b", env.Start)
	create(e, a)
	results, _ := change(e, request(e, ports.ScheduleChange{ScheduleKey: absent.ScheduleKey}))
	e.Same("the result of a removal of no schedule", results, []ports.ScheduleResult{ports.ScheduleChanged})
	names(e, ports.ScheduleNamesRequest{Queue: env.Orders}, ports.ScheduleName{Name: "nightly", Count: 1, First: a})
}

func listInvalid(e *env.Env) {
	for _, shard := range []int{-1, 1} {
		_, err := e.Store.Schedules(e.Ctx, ports.SchedulesRequest{Queue: env.Orders, Shards: []int{shard}})
		e.Refused("Schedules of a shard that is not there", err, ports.ErrInvalidRequest)
		_, err = e.Store.ScheduleNames(e.Ctx, ports.ScheduleNamesRequest{Queue: env.Orders, Shards: []int{shard}})
		e.Refused("ScheduleNames of a shard that is not there", err, ports.ErrInvalidRequest)
	}

	for _, text := range []string{"\xff", "a\x00"} {
		for _, r := range []ports.SchedulesRequest{
			{ID: text}, {Name: text}, {After: key(text, "a")}, {After: key("a", text)},
		} {
			r.Queue = env.Orders
			_, err := e.Store.Schedules(e.Ctx, r)
			e.Refused(fmt.Sprintf("Schedules by %+v", r), err, ports.ErrInvalidRequest)
		}

		_, err := e.Store.ScheduleNames(e.Ctx, ports.ScheduleNamesRequest{Queue: env.Orders, After: text})
		e.Refused("ScheduleNames after what can't be", err, ports.ErrInvalidRequest)
	}

	_, err := e.Store.Schedules(e.Ctx, ports.SchedulesRequest{Queue: "nowhere"})
	e.Refused("Schedules of an unknown queue", err, ports.ErrUnknownQueue)
	_, err = e.Store.ScheduleNames(e.Ctx, ports.ScheduleNamesRequest{Queue: "nowhere"})
	e.Refused("ScheduleNames of an unknown queue", err, ports.ErrUnknownQueue)
}
