package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports"
)

// ticks are past ticks with these outcomes, one a day, the newest a day ago.
func ticks(outcomes ...core.TickOutcome) func(*core.Schedule) {
	return func(s *core.Schedule) {
		for at, outcome := range outcomes {
			due := core.InstantOf(epoch.AddDate(0, 0, at-len(outcomes)))
			s.Recent = append(s.Recent, core.Tick{Due: due, Outcome: outcome, Late: 1500 * time.Millisecond})
		}
	}
}

// tagged returns a tag as tags.
func tagged(tag string) core.Tags {
	t, _ := core.NewTags(tag) // it is valid
	return t
}

// stored returns the schedule of an id in orders.
func (h *house) stored(id, name string) *core.Schedule {
	h.t.Helper()
	page, err := h.store.Schedules(h.t.Context(), ports.SchedulesRequest{Queue: "orders", ID: id, Name: name})
	if err != nil || len(page.Schedules) != 1 {
		h.t.Fatalf("%s of %s: %v, %v", name, id, page.Schedules, err)
	}
	return &page.Schedules[0]
}

// paused pauses a schedule 20 minutes before the epoch.
func paused(s *core.Schedule, note, by string) {
	s.Paused, s.Note, s.PausedBy, s.PausedAt = true, note, by, core.InstantOf(epoch.Add(-20*time.Minute))
}

func TestSchedulesOfAllQueuesWorstFirst(t *testing.T) {
	h := newHouse(t, Options{})
	says(t, h.get("/schedules"), "No schedules. Queue.Schedule stores one")
	saysNot(t, h.get("/queue?q=orders"), "schedules-h")

	h.declare("mails", 1)
	h.declare("stopped", 1)
	h.schedule("orders", "a", "afine", ticks(core.TickMissed, core.TickSkipped, core.TickFired))
	h.schedule("orders", "b", "broken", func(s *core.Schedule) { s.Broken, s.RetryAt = "no zone", s.Next })
	h.schedule("orders", "b", "late", func(s *core.Schedule) { s.Next = core.InstantOf(epoch.Add(-time.Minute)) })
	h.schedule("mails", "c", "ended", func(s *core.Schedule) { s.Next = core.MaxInstant })
	h.schedule("mails", "c", "paused", func(s *core.Schedule) { paused(s, "bank", "ann") })
	h.schedule("mails", "d", "missed", ticks(core.TickFired, core.TickMissed))
	h.schedule("mails", "e", "missed", nil)
	h.schedule("stopped", "a", "nightly", ticks(core.TickByHand))
	if err := h.store.Pause(t.Context(), "stopped"); err != nil {
		t.Fatal(err)
	}

	page := h.get("/schedules")
	text := words(page)
	at := 0
	for _, want := range []string{
		"7 names, 8 schedules; the first id of each name: 1 broken, 1 late, 1 missed, 1 paused, 1 queue paused, " +
			"1 ended, 1 fine; the next tick of these ids is in 18 h 56 min",
		"◷ A tick of orders has been due for 1 min . list of the schedules that may be overdue",
		"broken b orders ● broken Each day at 23:00 0 23 * * * Europe/Madrid",
		"late b orders ◷ late", "missed first of 2 ids mails ◷ missed",
		"◷ missed, dropped by its catch-up Tue 1 Jan 04:04 CET",
		"paused c mails ‖ paused", "‖ none else Wed 2 Jan 23:00 CET paused 20 min ago by ann “bank” Push now … Resume …",
		"nightly a stopped ‖ queue paused", "✓ fired by hand", "ended c mails ◦ ended",
		"afine a orders ✓ fine", "in 18 h 56 min Wed 2 Jan 23:00 CET", "✓ fired Tue 1 Jan 04:04 CET",
	} {
		found := strings.Index(text[at:], want)
		if found < 0 {
			t.Fatalf("no %q after %q in: %s", want, text[:at], text)
		}
		at += found
	}
	says(t, h.get("/schedules?q=mails"), "Schedules of mails", "3 names, 4 schedules;")
	saysNot(t, h.get("/schedules?q=mails"), "nightly")
	says(t, page, "fired fired by hand missed skipped to come")
	if !strings.Contains(page, `aria-label="Last ticks: 1 fired, 1 missed, 1 skipped"`) {
		t.Error("the drawing of ticks has no text")
	}

	h.board.looker.last = nil
	says(t, h.get("/"), "● broken schedule orders Servers can't read the spec of the schedule broken",
		"◷ ticks late orders A tick of its schedules is 1 min late: no server runs this queue")
	says(t, h.get("/queue?q=orders"), "Schedules Schedule State When", "afine a ✓ fine", "all schedules")
	says(t, h.get("/id?q=orders&id=b"), "Schedules Schedule State When", "broken b ● broken", "late b ◷ late")
	saysNot(t, h.get("/id?q=orders&id=b"), "afine")
}

// The broken schedule of a name need not be that of its first id.
func TestABrokenScheduleOfAnotherIDIsWrong(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	h.schedule("orders", "b", "nightly", func(s *core.Schedule) { s.Broken, s.RetryAt = "no zone", s.Next })
	says(t, h.get("/"), "● broken schedule orders Servers can't read the spec of the schedule nightly")
	saysNot(t, h.get("/"), "(checked:")

	for n := range 120 {
		h.schedule("orders", fmt.Sprintf("id%03d", n), "nightly", nil)
	}
	h.board.looker.detailAgain("orders")
	says(t, h.get("/"), "the schedule nightly (checked: 100 of at least 122 schedules)")
}

// A filter by state does not judge a name by its first id: it states what was read, and leads to
// the names.
func TestTheStateOfNamesWithSeveralIDs(t *testing.T) {
	h := newHouse(t, Options{})
	for n := range 30 {
		h.schedule("orders", fmt.Sprintf("tenant-%02d", n), "invoice", func(s *core.Schedule) {
			switch n {
			case 20:
				s.Next = core.InstantOf(epoch.Add(-70 * time.Second))
			case 21, 22:
				s.Paused = true
			}
		})
	}
	h.schedule("orders", "a", "alone", nil)

	page := h.get("/schedules?q=orders")
	says(t, page, "2 names, 31 schedules; the first id of each name: 2 fine; the next tick of these ids is in",
		"◷ A tick of orders has been due for 1 min 10 s . list of the schedules that may be overdue", "invoice first of 30 ids ✓ fine")
	says(t, h.get(link(t, page, "list of the schedules that may be overdue")), "invoice schedules of orders", "tenant-20 ◷ late")
	for state, want := range map[string]string{"late": "tenant-20 ◷ late", "paused": "tenant-21 ‖ paused"} {
		for _, all := range []string{"/schedules?state=", "/schedules?q=orders&state="} {
			page := h.get(all + state)
			says(t, page, "No first id of a name matches. Read here: the first id of 2 names. "+
				"Other ids of the same names may be "+state)
			saysNot(t, page, "No schedules match", ">alone")
			page = h.get(link(t, page, `invoice[^<]*30 ids`))
			says(t, page, want)
			saysNot(t, page, ">tenant-00<")
		}
	}

	// What is read and matches is listed, and leads to the others of its state.
	page = h.get("/schedules?q=orders&state=fine")
	says(t, page, "invoice first of 30 ids ✓ fine", "alone a ✓ fine")
	saysNot(t, page, "Read here")
	if !strings.Contains(page, `href="named?name=invoice&amp;q=orders&amp;state=fine"`) {
		t.Errorf("the name leads to other states too: %s", page)
	}
	saysNot(t, h.get("/schedules?q=orders&state=late&contains=alo"), "Read here", ">invoice")

	for _, target := range []string{"/", "/queue?q=orders"} {
		says(t, h.get(target), "◷ ticks late orders A tick of its schedules is 1 min 10 s late")
		if !strings.Contains(h.get(target), `href="named?name=invoice&amp;q=orders&amp;state=late"`) {
			t.Errorf("%s does not lead to the late schedule", target)
		}
	}
}

// The list of the late schedules is that of a name only if other names can't have them.
func TestTheListOfLateSchedules(t *testing.T) {
	name := func(name string, count int64) (n inspect.ScheduleName) {
		n.Name, n.Count = name, count
		return n
	}
	for _, tt := range []struct {
		of   *details
		want string
	}{
		{nil, "schedules?q=orders&state=late"},
		{&details{schedules: []inspect.ScheduleName{name("a", 5), name("b", 1)}}, "named?name=a&q=orders&state=late"},
		{&details{schedules: []inspect.ScheduleName{name("a", 5), name("b", 5)}}, "schedules?q=orders&state=late"},
		{
			&details{schedules: []inspect.ScheduleName{name("a", 5)}, ticks: wrong.Ticks{More: true}},
			"schedules?q=orders&state=late",
		},
		{
			&details{schedules: []inspect.ScheduleName{name("a", 5), name("b", 5)}, overdue: []string{"b"}},
			"named?name=b&q=orders&state=late",
		},
		{
			&details{schedules: []inspect.ScheduleName{name("a", 5), name("b", 1)}, overdue: []string{"b"}},
			"schedules?q=orders&state=late",
		},
		{
			&details{schedules: []inspect.ScheduleName{name("a", 5), name("b", 5)}, overdue: []string{"a", "b"}},
			"schedules?q=orders&state=late",
		},
	} {
		s := &snapshot{details: map[string]*details{"orders": tt.of}}
		if got := s.schedulesIn("orders", "late"); got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.of, got, tt.want)
		}
	}
}

// The page of a schedule has its ticks in the zone of the schedule, across a change of the clock,
// and in UTC, which scripts show as local time.
func TestThePageOfASchedule(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "tenant 7", "nightly", func(s *core.Schedule) {
		ticks(core.TickSkipped, core.TickFired)(s)
		s.Next = core.InstantOf(time.Date(2030, 3, 29, 22, 0, 0, 0, time.UTC))
		s.Fired, s.Missed, s.Skipped = 1234, 5, 6
		s.Data, s.Tags = []byte(`{"days":1}`), tagged("monthly")
		s.Jitter, s.Catchup, s.Skip = time.Minute, core.Catchup{Within: time.Hour}, true
		s.Set, s.Version, s.Edited, s.By = "reports", 3, true, "ann"
	})
	page := h.get("/schedule?q=orders&name=nightly&id=tenant+7")
	says(t, page, "nightly ✓ fine schedule of tenant 7 in orders Each day at 23:00 Europe/Madrid",
		"Last tick: The queue has nothing of it any more: it is done, or was removed.",
		"fired 1,234 missed 5 skipped 6", "rule cron 0 23 * * * Europe/Madrid", "jitter 60 s",
		"the newest 1, not older than 3600 s",
		"when busy skips the tick", "reports, version 3, edited", "changed 0 s ago by ann", "tags monthly",
		"Fri 29 Mar 23:00 CET 2030-03-29 22:00:00 UTC", "Sat 30 Mar 23:00 CET 2030-03-30 22:00:00 UTC",
		"Sun 31 Mar 23:00 CEST 2030-03-31 21:00:00 UTC", "Tue 2 Apr 23:00 CEST",
		"Tue 1 Jan 04:04 CET 2030-01-01 03:04:00 UTC ✓ fired, done or removed – – 1.5 s",
		"Mon 31 Dec 2029 04:04 CET 2029-12-31 03:04:00 UTC ↷ skipped, the id had a job – – 1.5 s",
		`"days": 1`, "its score is the time of the tick")
	saysNot(t, page, "Wed 3 Apr")

	h.answers(map[string]int{
		"/schedule?q=orders&name=nix&id=tenant+7": 404,
		"/schedule?q=orders&name=nightly&id=nix":  404,
		"/schedule?q=orders":                      400,
		"/named?q=orders":                         400,
		"/named?q=orders&name=nightly&after=x":    400,
		"/schedules?q=nix":                        404,
	})
}

// A schedule whose ticks don't fire shows since when, by whom and why, and no time of a next tick.
func TestThePageOfAPausedSchedule(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("stopped", 1)
	h.schedule("orders", "a", "nightly", func(s *core.Schedule) {
		paused(s, "bank holiday", "ann")
		s.By = "code" // another change came after the pause
	})
	h.schedule("orders", "b", "nightly", func(s *core.Schedule) { s.Paused = true })
	h.schedule("stopped", "a", "nightly", func(s *core.Schedule) { s.Next = core.InstantOf(epoch.Add(-time.Hour)) })
	if err := h.store.Pause(t.Context(), "stopped"); err != nil {
		t.Fatal(err)
	}

	says(t, h.get("/schedule?q=orders&name=nightly&id=a"), "nightly ‖ paused", "‖ Paused 20 min ago by ann: bank holiday",
		"next tick none until it is resumed", "changed 0 s ago by code", "‖ They don't fire until it is resumed.")
	page := h.get("/schedule?q=orders&name=nightly&id=b")
	says(t, page, "‖ Paused fired", "next tick none until it is resumed")
	saysNot(t, page, "1970")
	page = h.get("/schedule?q=stopped&name=nightly&id=a")
	says(t, page, "nightly ‖ queue paused", "‖ Its queue is paused.", "next tick none until its queue is resumed",
		"‖ They don't fire until its queue is resumed.")
	saysNot(t, page, "has been due")
	says(t, h.get("/schedules?q=stopped"), "nightly a ‖ queue paused Each day at 23:00 0 23 * * * Europe/Madrid no tick yet ‖ none")
}

// An overdue tick is not fine, also before it is late.
func TestAnOverdueTick(t *testing.T) {
	h := newHouse(t, Options{})
	for name, late := range map[string]time.Duration{
		"fresh": wrong.DueTick - time.Second, "overdue": 50 * time.Second, "overlong": wrong.LateTick,
	} {
		h.schedule("orders", "a", name, func(s *core.Schedule) { s.Next = core.InstantOf(epoch.Add(-late)) })
	}
	says(t, h.get("/schedule?q=orders&name=fresh&id=a"), "fresh ✓ fine", "next tick 4 s ago")
	says(t, h.get("/schedule?q=orders&name=overdue&id=a"),
		"overdue ◷ due", "◷ The next tick has been due for 50 s .", "next tick due for 50 s")
	says(t, h.get("/schedule?q=orders&name=overlong&id=a"), "overlong ◷ late", "◷ The next tick has been due for 1 min .")
	page := h.get("/schedules?q=orders")
	says(t, page, "1 late, 1 due, 1 fine", "overdue a ◷ due", "due for 50 s Wed 2 Jan 04:03:10 CET")
	says(t, h.get("/schedules?q=orders&state=due"), "1 name, 1 schedule; 1 due")
}

// What became of the last tick is what the queue has of the id now.
func TestWhatBecameOfTheLastTick(t *testing.T) {
	shard := core.ShardOf("a", houseShards)
	claim := func(h *house) {
		h.push("orders", "a", 0, "p")
		h.turn("orders", shard, 1)
	}
	for _, tt := range []struct {
		last, row string
		happen    func(*house)
	}{
		{"The id's job is queued. It was first pushed 0 s ago .", "fired, waiting – – 1.5 s",
			func(h *house) { h.push("orders", "a", 0, "p") }},
		{"The id's job waits, and is due in 1 h .", "fired, waiting – – 1.5 s",
			func(h *house) { h.push("orders", "a", time.Hour, "p") }},
		{"The id's job has failed 1 time, and waits for a retry in 1 h : boom", "fired, retrying – – 1.5 s",
			func(h *house) { h.ended(core.Failed, "boom", "a") }},
		{"The id is in the morgue, changed 0 s ago : boom", "fired, dead – – 1.5 s",
			func(h *house) { h.ended(core.Buried, "boom", "a") }},
		{"The queue has nothing of it any more: it is done, or was removed.", "fired, done or removed – – 1.5 s",
			func(h *house) { h.ended(core.Done, "", "a") }},
		{"The id's job runs on blue, or waits there for a lane. It was claimed 10 min ago .",
			"fired, running blue 10 min 1.5 s",
			func(h *house) { claim(h); h.advance(10 * time.Minute) }},
		{"The id's job runs on blue, and another one waits for its end. It was claimed 0 s ago .",
			"fired, running blue 0 s 1.5 s",
			func(h *house) { claim(h); h.push("orders", "a", 0, "q") }},
		{"The id's job was left by blue, which is gone or has lost the shard, and had claimed it 2 h ago .",
			"fired, left blue 2 h 1.5 s",
			func(h *house) { claim(h); h.advance(2 * time.Hour) }},
	} {
		h := newHouse(t, Options{})
		h.schedule("orders", "a", "nightly", ticks(core.TickFired))
		tt.happen(h)
		says(t, h.get("/schedule?q=orders&name=nightly&id=a"), "Last tick: "+tt.last, "✓ "+tt.row)
	}

	h := newHouse(t, Options{})
	h.ended(core.Buried, "boom", "a")
	h.advance(48 * time.Hour)
	h.schedule("orders", "a", "nightly", func(s *core.Schedule) {
		s.Recent = []core.Tick{{Due: core.InstantOf(epoch.Add(time.Hour)), Outcome: core.TickFired}}
	})
	h.schedule("orders", "b", "missed", ticks(core.TickMissed))
	h.schedule("orders", "b", "new", nil)
	says(t, h.get("/schedule?q=orders&name=nightly&id=a"),
		"it is done, or was removed. The dead letter of the id is older.")
	says(t, h.get("/schedule?q=orders&name=missed&id=b"),
		"Last tick: It pushed nothing: missed, dropped by its catch-up. fired 0")

	// A skipped tick leads to the job that it has met, which the tick before it has pushed.
	h.schedule("orders", "d", "skips", ticks(core.TickFired, core.TickFired, core.TickSkipped))
	h.push("orders", "d", time.Hour, "p")
	says(t, h.get("/schedule?q=orders&name=skips&id=d"),
		"Last tick: It pushed nothing: skipped, the id had a job. The id's job waits, and is due in 1 h .",
		"↷ skipped, the id had a job – – 1.5 s", "✓ fired, waiting – – 1.5 s", "✓ fired – – 1.5 s")
	saysNot(t, h.get("/schedule?q=orders&name=new&id=b"), "Last tick:")
}

func TestSchedulesArePagedByQueueAndByName(t *testing.T) {
	h := newHouse(t, Options{})
	for n := range 120 {
		h.schedule("orders", "a", fmt.Sprintf("n%03d", n), nil)
		h.schedule("orders", fmt.Sprintf("id%03d", n), "shared", nil)
	}
	page := h.get("/schedules?q=orders")
	says(t, page, "n099", "next page")
	saysNot(t, page, "n100")
	next := h.get(link(t, page, "next page"))
	says(t, next, "n100", "shared first of 120 ids", "first page")
	says(t, h.get("/schedules"), "orders has more names. Its own page shows them.")
	says(t, h.get("/queue?q=orders"), "n009", "all schedules")
	saysNot(t, h.get("/queue?q=orders"), "n010")

	page = h.get("/named?q=orders&name=shared")
	says(t, page, "shared schedules of orders", "id099", "Push all now …")
	saysNot(t, page, "id100")
	says(t, h.get(link(t, page, "next page")), "id100", "first page")
	says(t, h.get("/named?q=orders&name=nix"), "No schedules of this name.")

	for n := range 60 {
		queue := fmt.Sprintf("q%02d", n)
		h.declare(queue, 1)
		h.schedule(queue, "a", "nightly", nil)
	}
	page = h.get("/schedules")
	says(t, page, "next page", "q48")
	saysNot(t, page, "q49</span>")
	says(t, h.get(link(t, page, "next page")), "q49", "q59", "first page")
}

func TestActionsOnASchedule(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Actor: func(*http.Request) string { return "ann" }}})
	h.schedule("orders", "a", "nightly", nil)
	one := []string{
		"q", "orders", "id", "a", "name", "nightly", "back", "schedule", "back.id", "a", "back.name", "nightly",
	}
	act := func(op string, more ...string) string {
		form := append([]string{"op", op}, one...)
		asks := h.form(form...)
		if asks.Code != http.StatusOK || field(t, asks.Body.String(), "confirm") != "1" {
			t.Fatalf("%s without an answer: status %d", op, asks.Code)
		}
		says(t, asks.Body.String(), "the schedule nightly of a in orders?")
		return h.do(append(append(form, "confirm", "1"), more...)...)
	}

	says(t, act("pause-schedule", "reason", " bank  maintenance "), "Paused. No tick fires until it is resumed.",
		"‖ Paused 0 s ago by ann: bank maintenance", "They don't fire until it is resumed", "Resume …")
	if s := h.stored("a", "nightly"); !s.Paused || s.Note != "bank maintenance" {
		t.Errorf("%+v", s)
	}
	says(t, act("resume-schedule"), "Resumed.", "✓ fine")
	next := h.stored("a", "nightly").Next
	says(t, act("run-schedule"), "Pushed. The next tick stays as it is.", "Last tick: The id's job is queued.",
		"✓ fired by hand, waiting")
	if s := h.stored("a", "nightly"); s.Next != next || s.Fired != 1 {
		t.Errorf("%+v", s)
	}
	says(t, h.get("/queue?q=orders"), "nightly a ✓ fine", "✓ fired by hand")
	says(t, h.do("op", "pause-schedule", "q", "orders", "id", "a", "name", "nightly", "back", "queue", "confirm", "1"),
		"Paused.", "nightly a ‖ paused")
	page := h.form(append([]string{"op", "remove-schedule"}, one...)...).Body.String()
	if !strings.Contains(page, `<a href="schedule?id=a&amp;name=nightly&amp;q=orders">No</a>`) {
		t.Errorf("No does not lead back to the schedule: %s", page)
	}
	page = h.do(append(one, "op", "remove-schedule", "confirm", "1")...)
	says(t, page, "The schedule is removed. What it has pushed stays.", "Schedules of orders", "No schedules.")
}

func TestActionsOnAllSchedulesOfAName(t *testing.T) {
	h := newHouse(t, Options{})
	for _, id := range []string{"a", "b", "c"} {
		h.schedule("orders", id, "nightly", nil)
	}
	h.schedule("orders", "a", "other", nil)
	form := []string{
		"op", "pause-schedule", "q", "orders", "name", "nightly", "all", "1", "back", "named", "back.name", "nightly",
	}
	says(t, h.form(form...).Body.String(), "Pause the schedules nightly of all 3 ids in orders?",
		"No tick fires until it is resumed.")
	says(t, h.do(append(form, "confirm", "0")...), "Paused.", "nightly schedules of orders")
	for _, id := range []string{"a", "b", "c"} {
		if !h.stored(id, "nightly").Paused {
			t.Errorf("%s is not paused", id)
		}
	}
	if h.stored("a", "other").Paused {
		t.Error("another name is paused too")
	}

	// The row of a name with several ids has the same actions, and the row of one id acts on that.
	for _, page := range []string{h.get("/schedules"), h.get("/queue?q=orders")} {
		says(t, page, "nightly first of 3 ids", "Push all … Resume all …", "other a", "Push now … Pause …")
		if n := strings.Count(page, `name="all" value="1"`); n != 1 {
			t.Errorf("%d forms act on all of a name", n)
		}
	}
	says(t, h.do("op", "resume-schedule", "q", "orders", "name", "nightly", "all", "1", "back", "schedules",
		"confirm", "0"), "Resumed.", "nightly first of 3 ids")

	// A form that has lost the id must not act on all.
	for _, lost := range [][]string{
		{"name", "nightly"},
		{"name", "nightly", "id", ""},
		{"id", "a"},
		{"name", "nightly", "id", "a", "all", "1"},
		{"all", "1"},
	} {
		if w := h.form(append([]string{
			"op", "run-schedule", "q", "orders", "confirm", fmt.Sprint(len(lost) / 4),
		}, lost...)...); w.Code == http.StatusSeeOther {
			t.Errorf("%q is done", lost)
		}
	}
	if s := h.stored("b", "nightly"); s.Fired != 0 {
		t.Errorf("%+v", s)
	}
}

// The question of an action on all schedules of a name states how many those are, also if the page
// shows a part of them.
func TestTheQuestionOfAnActionOnAllSchedulesOfAName(t *testing.T) {
	h := newHouse(t, Options{})
	for n := range 999 {
		h.schedule("orders", fmt.Sprintf("id%03d", n), "nightly", func(s *core.Schedule) { s.Paused = n < 2 })
	}
	h.schedule("orders", "a", "alone", nil)
	ask := func(op, name string) string {
		return h.form("op", op, "q", "orders", "name", name, "all", "1", "back", "named", "back.name", name).Body.String()
	}

	page := ask("run-schedule", "nightly")
	says(t, page, "Push now for the schedules nightly of all 999 ids in orders?", "This can't be undone.",
		"All ids with a schedule of this name are affected, also those that a filter or a page leaves out: "+
			"999 ids, such as id000, id001, id002, id003, id004.")
	if !strings.Contains(page, ">Push now</button>") {
		t.Errorf("the button is another one: %s", page)
	}
	says(t, ask("pause-schedule", "nightly"), "Pause the schedules nightly of all 999 ids in orders?")
	says(t, ask("resume-schedule", "alone"), "Resume the schedules alone of the only id with it in orders?")
	says(t, h.form("op", "run-schedule", "q", "orders", "name", "alone", "id", "a").Body.String(),
		"Push now for the schedule alone of a in orders?")
	if w := h.form("op", "run-schedule", "q", "orders", "name", "nix", "all", "1"); w.Code != http.StatusNotFound {
		t.Errorf("a name without ids: status %d", w.Code)
	}

	note := "They act on all ids of the name, also on those that the filter leaves out."
	says(t, h.get("/named?q=orders&name=nightly&state=paused"), "id001", note)
	saysNot(t, h.get("/named?q=orders&name=nightly"), note)

	h.store.schedulesAway = []core.Shard{{Queue: "orders", Index: 2}}
	says(t, ask("pause-schedule", "nightly"), "of at least 999 ids in orders?",
		"Those of 1 shard that can't be reached now are missing.")
	says(t, ask("pause-schedule", "alone"), "of at least 1 id in orders?")
}

// Ids that must not be shown are not in a question either.
func TestTheQuestionOfAnActionOnSchedulesIsRedacted(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{RedactID: func(string, string) string { return "someone" }}})
	for _, id := range []string{"secret-1", "secret-2"} {
		h.schedule("orders", id, "nightly", nil)
	}
	page := h.form("op", "pause-schedule", "q", "orders", "name", "nightly", "all", "1").Body.String()
	says(t, page, "of all 2 ids in orders?", "such as someone, someone.")
	saysNot(t, page, "secret")
	says(t, h.form("op", "pause-schedule", "q", "orders", "name", "nightly", "id", "secret-1").Body.String(),
		"Pause the schedule nightly of someone in orders?")
}

// A page without schedules does not say that there are none unless the store has said so.
func TestSchedulesThatAreNotKnown(t *testing.T) {
	h := newHouse(t, Options{})
	h.get("/")
	const unknown = "Whether there are schedules here is not known: not all could be read."
	for _, filter := range []string{"", "?state=late"} {
		h.store.schedulesFail = errors.New("refused")
		page := h.get("/schedules" + filter)
		says(t, page, "orders: the store fails: refused", unknown)
		saysNot(t, page, "No schedules", "more follow")

		h.store.schedulesFail = nil
		saysNot(t, h.get("/schedules"+filter), unknown)
	}

	h.store.schedulesAway = []core.Shard{{Queue: "orders", Index: 2}}
	for _, path := range []string{"/schedules", "/schedules?q=orders", "/named?q=orders&name=nightly"} {
		page := h.get(path)
		says(t, page, "missing here: 1. orders/2", unknown)
		saysNot(t, page, "No schedules")
	}
	h.push("orders", "a", 0, "p")
	says(t, h.get("/id?q=orders&id=a"), "missing here: 1. orders/2")
}

// An action that does not reach all schedules is no success.
func TestAnActionThatDoesNotReachAllSchedules(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	h.store.schedulesAway = []core.Shard{{Queue: "orders", Index: 2}}
	says(t, h.get("/schedules"), "Unreachable shards, which are missing here: 1. orders/2")
	w := h.form("op", "resume-schedule", "q", "orders", "name", "nightly", "all", "1", "confirm", "0")
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("status %d", w.Code)
	}
	says(t, w.Body.String(), "Some schedules could not be reached", "Shards that can't be reached now: 1.")
}

// A name whose records can't be read is shown as broken with the reason, without a time or a form.
func TestSchedulesThatCannotBeRead(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	h.store.schedulesDamaged = true
	for _, path := range []string{"/schedules", "/queue?q=orders"} {
		page := h.get(path)
		says(t, page, "nightly", "broken", "run skein repair recount")
		saysNot(t, page, "◷ late", "1970", "Push now")
	}
}

func TestRedactionOfSchedules(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{
		RedactID:      func(_, id string) string { return "id-" + fmt.Sprint(len(id)) },
		RedactError:   func(_, _, text string) string { return "error-" + fmt.Sprint(len(text)) },
		RedactPayload: func(string, string, []byte) []byte { return []byte("payload") },
	}})
	h.schedule("orders", "secret-a", "nightly", func(s *core.Schedule) {
		s.Data, s.Meta, s.Tags = []byte("secret-p"), []byte("secret-m"), tagged("secret-t")
		s.Broken, s.RetryAt, s.Note, s.Paused = "secret-e", s.Next, "secret-n", true
	})
	h.schedule("orders", "secret-b", "weekly", nil)
	for _, target := range []string{
		"/", "/queue?q=orders", "/schedules", "/schedules?q=orders", "/named?q=orders&name=nightly",
	} {
		page := h.get(target)
		saysNot(t, page, "secret", `name="id" value`, "schedule?")
	}
	says(t, h.get("/named?q=orders&name=nightly"), "id-8")
	// A user who knows an id may ask for its schedule, and is shown none of its contents.
	page := h.get("/schedule?q=orders&name=nightly&id=secret-a")
	saysNot(t, page, "secret-p", "secret-m", "secret-t", "secret-e", "secret-n")
	says(t, page, "payload", "error-8")
}

func TestAScheduleWithoutTheRightToPayloads(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb == httpapi.VerbViewPayload {
			return errors.New("no")
		}
		return nil
	}}})
	h.schedule("orders", "a", "nightly", func(s *core.Schedule) { s.Data = []byte("secret") })
	page := h.get("/schedule?q=orders&name=nightly&id=a")
	says(t, page, "You don't have permission to see payloads.", "Wed 2 Jan 23:00 CET")
	saysNot(t, page, "secret")
}

func TestHostileSchedulesAreText(t *testing.T) {
	h := newHouse(t, Options{})
	for n, id := range hostileIDs() {
		h.schedule("orders", id, "nightly", func(s *core.Schedule) {
			s.Note, s.By, s.Broken, s.RetryAt = hostile[n], hostile[n], hostile[n], s.Next
			s.Data, s.Set, s.Paused = []byte(hostile[n]), hostile[n], n%2 == 0
		})
	}
	pages := []string{"/", "/queue?q=orders", "/schedules", "/schedules?q=orders", "/named?q=orders&name=nightly"}
	for _, id := range hostileIDs() {
		pages = append(pages, "/"+href("schedule", "q", "orders", "name", "nightly", "id", id),
			"/"+href("id", "q", "orders", "id", id))
	}
	for _, target := range pages {
		isText(t, target, h.get(target))
	}
	for _, text := range hostile {
		isText(t, text, answerOf(h.board, request(
			http.MethodGet, "/"+href("schedule", "q", "orders", "name", text, "id", text), nil,
		)).Body.String())
		isText(t, text, answerOf(h.board, request(
			http.MethodGet, "/"+href("named", "q", "orders", "name", text), nil,
		)).Body.String())
	}
}

func TestFiltersOfSchedules(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	pause := func(s *core.Schedule) { s.Paused = true }
	h.schedule("orders", "a", "nightly", nil)
	h.schedule("orders", "b", "weekly", pause)
	h.schedule("mails", "a", "Night-digest", pause)
	h.schedule("mails", "b", "gone", func(s *core.Schedule) { s.Next = core.MaxInstant })

	for target, want := range map[string][2]string{
		"/schedules?state=paused":                {"2 names, 2 schedules; 2 paused", "nightly"},
		"/schedules?contains=NIGHT":              {"2 names, 2 schedules; 1 paused, 1 fine", "weekly"},
		"/schedules?contains=night&state=paused": {"Night-digest", "weekly"},
		"/schedules?q=orders&state=paused":       {"1 name, 1 schedule; 1 paused", "nightly"},
		"/schedules?q=orders&state=ended":        {"No schedules match.", "nightly"},
		"/schedules?state=nix":                   {"4 names, 4 schedules;", "No schedules match."},
		"/named?q=orders&name=weekly&state=fine": {"No schedules of this name match.", ">b</a>"},
	} {
		page := h.get(target)
		says(t, page, want[0])
		saysNot(t, page, want[1])
	}
	page := h.get("/schedules?contains=night&state=paused")
	for _, want := range []string{
		`<option value="paused" selected>`, `name="contains" value="night"`, `<option value="mails">mails</option>`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q in %s", want, page)
		}
	}

	// An action leads back to the list as it was.
	w := h.form("op", "resume-schedule", "q", "mails", "id", "a", "name", "Night-digest", "confirm", "1",
		"back", "schedules", "back.all", "1", "back.contains", "night", "back.state", "paused")
	if to := w.Header().Get("Location"); to != "schedules?contains=night&did=resume-schedule&state=paused" {
		t.Errorf("the action leads to %q", to)
	}
}

// A filter reads until enough rows match, within bounds, and the next page continues from there.
func TestFiltersOfManySchedules(t *testing.T) {
	h := newHouse(t, Options{})
	for n := range 1150 {
		h.schedule("orders", "a", fmt.Sprintf("n%04d", n), func(s *core.Schedule) { s.Paused = n%100 == 0 })
		h.schedule("orders", fmt.Sprintf("id%04d", n), "shared", func(s *core.Schedule) { s.Paused = n%100 == 0 })
	}
	page := h.get("/schedules?q=orders&state=paused")
	says(t, page, "10 names, 10 schedules; 10 paused", "n0900", "next page")
	next := link(t, page, "next page")
	if !strings.Contains(next, "state=paused") {
		t.Errorf("the next page is %q, without the filter", next)
	}
	page = h.get(next)
	says(t, page, "n1000", "n1100", "first page")
	saysNot(t, page, "n0900", "next page")
	says(t, h.get("/schedules?q=orders&contains=nix"), "None of the schedules read so far match; more follow.")
	says(t, h.get("/schedules?contains=n08"), "100 names, 100 schedules; 1 paused, 99 fine")
	says(t, h.get("/schedules?contains=n11"), "has more names. Its own page shows them.", "more follow.")

	page = h.get("/named?q=orders&name=shared&state=paused")
	says(t, page, "id0900", "next page")
	saysNot(t, page, "id1000", "id0901")
	page = h.get(link(t, page, "next page"))
	says(t, page, "id1000", "id1100", "first page")
	saysNot(t, page, "next page")
	says(t, h.get("/named?q=orders&name=shared&state=ended"), "None of the schedules read so far match; more follow.")
}

// A user who may not see all queues gets no list of them.
func TestFiltersOfSchedulesOfOneQueue(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" {
			return errors.New("no")
		}
		return nil
	}}})
	h.declare("secret-queue", 1)
	h.schedule("orders", "a", "nightly", nil)
	page := h.get("/schedules?q=orders&state=fine")
	says(t, page, "nightly")
	saysNot(t, page, "secret-queue")
	if !strings.Contains(page, `<input type="hidden" name="q" value="orders">`) {
		t.Error("the form of the filter loses the queue")
	}
}
