package dashboard

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// past is the address of the preview of a range of nightly of a, which ticks at 22:00 UTC.
func past(from, to string) string {
	return "/" + href("backfill", "q", "orders", "name", "nightly", "id", "a", "from", from, "to", to)
}

// answer returns the form that confirms a preview.
func answer(t *testing.T, preview string) []string {
	t.Helper()
	form := []string{"op", "backfill-schedule", "back.name", "nightly", "back.id", "a", "reason", "the bank was closed"}
	for _, name := range []string{"q", "name", "id", "back", "from", "to", "ticks"} {
		_, post, _ := strings.Cut(preview, `<form method="post"`)
		form = append(form, name, field(t, post, name))
	}
	return form
}

// A range is in the zone of the schedule, is previewed, and is then pushed once.
func TestBackfill(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Actor: func(*http.Request) string { return "ann" }}})
	if _, err := h.store.Declare(t.Context(), ports.DeclareRequest{
		Queue: "each", Shards: 1, Merge: core.MergeRule{Same: core.SamePush},
	}); err != nil {
		t.Fatal(err)
	}
	h.schedule("orders", "a", "nightly", ticks(core.TickFired, core.TickMissed))
	h.schedule("each", "a", "nightly", nil)

	page := h.get("/schedule?q=orders&name=nightly&id=a")
	says(t, page, "Backfill pushes for past ticks, after a preview", "in Europe/Madrid Preview",
		"make up … for Tue 1 Jan 04:04 CET")
	saysNot(t, page, "make up … for Mon")

	preview := h.get(past("2029-12-20T23:00", "2029-12-31T23:00:00"))
	says(t, preview, "Backfill nightly schedule of a in orders", "11 ticks of at most 1,000.",
		"The queue orders merges by union, so the equal payloads of these ticks become one payload", "In Europe/Madrid",
		"Thu 20 Dec 2029 23:00 CET 2029-12-20 22:00:00 UTC 12 d 5 h ago", "Sat 22 Dec 2029 23:00 CET", "and 5 between",
		"Fri 28 Dec 2029 23:00 CET", "Sun 30 Dec 2029 23:00 CET", "Push 11")
	saysNot(t, preview, "31 Dec 2029 23:00", "23 Dec 2029")
	if q := h.stats(); q.Waiting() != 0 {
		t.Errorf("a preview has pushed: %+v", q)
	}
	says(t, h.do(answer(t, preview)...), "11 pushed, one for each past tick of the range.", "nightly ◷ missed",
		"The id's job is queued.", "Last backfill: 11 ticks of the range from Thu 20 Dec 2029 23:00 CET to before "+
			"Mon 31 Dec 2029 23:00 CET, pushed 0 s ago by ann. The counts and the last ticks are without it.")
	saysNot(t, page, "Last backfill")
	says(t, h.get("/audit"), "backfill schedule", "the bank was closed", "ann", "11 changed")

	one := h.get(past("2029-12-20T23:00:00", "2029-12-20T23:00:01"))
	says(t, one, "1 tick of at most 1,000.", "Push 1")
	saysNot(t, one, "equal payloads", "between")
	each := h.get(strings.Replace(past("2029-12-20T23:00", "2029-12-22T23:00"), "orders", "each", 1))
	says(t, each, "2 ticks of")
	saysNot(t, each, "equal payloads")
}

// A range of the schedule's clock has its ticks in the nights in which the clock changes.
func TestABackfillOverAChangeOfTheClock(t *testing.T) {
	madrid, err := time.LoadLocation("Europe/Madrid")
	if err != nil {
		t.Fatal(err)
	}
	at := func(text string) time.Time {
		t.Helper()
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}

	for _, tt := range []struct {
		clock       string
		first, last time.Time
	}{
		{"2029-06-01T02:30", at("2029-06-01T02:30:00+02:00"), at("2029-06-01T02:30:00+02:00")},
		{"2029-10-28T02:30", at("2029-10-28T02:30:00+02:00"), at("2029-10-28T02:30:00+01:00")},
		{"2029-10-28T03:00", at("2029-10-28T03:00:00+01:00"), at("2029-10-28T03:00:00+01:00")},
		{"2029-03-25T02:30", at("2029-03-25T03:00:00+02:00"), at("2029-03-25T03:00:00+02:00").Add(time.Microsecond)},
		{"2029-03-25T03:00:00", at("2029-03-25T03:00:00+02:00"), at("2029-03-25T03:00:00+02:00")},
	} {
		first, last, err := timesIn("from", tt.clock, madrid)
		if err != nil || !first.Equal(tt.first) || !last.Equal(tt.last) {
			t.Errorf("%s: %v, %v, %v; want %v, %v", tt.clock, first, last, err, tt.first, tt.last)
		}
	}
}

// A range that can't be backfilled keeps the form, and states why.
func TestRangesThatCantBeBackfilled(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	for _, tt := range []struct{ from, to, want string }{
		{"2029-12-20T23:01", "2029-12-20T23:59", "has no tick"},
		{"2020-01-01T00:00", "2029-01-01T00:00", "more than 1000 ticks"},
		{"2029-12-20T23:00", "2031-01-01T00:00", "in the future"},
		{"2029-12-20T23:00", "", "to is \"\"; give a date and a time"},
		{"yesterday", "2029-12-20T23:00", "from is \"yesterday\"; give a date and a time"},
	} {
		w := answerOf(h.board, request(http.MethodGet, past(tt.from, tt.to), nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%s to %s: status %d", tt.from, tt.to, w.Code)
		}
		says(t, w.Body.String(), tt.want, "Preview")
		saysNot(t, w.Body.String(), `action="act"`)
		if !strings.Contains(w.Body.String(), `name="from" value="`+tt.from+`"`) {
			t.Errorf("the form has lost %q", tt.from)
		}
	}
	says(t, h.get(past("", "")), "Preview", "Back")
	h.answers(map[string]int{
		past("x", "x") + "&id=":            400,
		"/backfill?q=orders&name=nix&id=a": 404,
		"/backfill?q=nix&name=n&id=a":      404,
	})
}

// A backfill pushes the ticks of its preview.
func TestABackfillOfAnotherPreviewIsRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	form := answer(t, h.get(past("2029-12-20T23:00", "2029-12-25T23:00")))
	edited, err := core.CronSpec("30 23 * * *", "Europe/Madrid")
	if err != nil {
		t.Fatal(err)
	}
	s := *h.stored("a", "nightly")
	s.Spec, s.Revision = edited, s.Revision+1
	if _, err := h.store.ChangeSchedules(t.Context(), ports.ChangeSchedulesRequest{
		Shard: core.Shard{Queue: "orders", Index: core.ShardOf("a", houseShards)}, Shards: houseShards, Generation: 1,
		Changes: []ports.ScheduleChange{{ScheduleKey: s.ScheduleKey, Revision: s.Revision - 1, Schedule: &s}},
	}); err != nil {
		t.Fatal(err)
	}

	for _, lost := range [][]string{
		form, append(form, "ticks", ""), {"op", "backfill-schedule", "q", "orders", "name", "nightly", "id", "a"},
	} {
		if w := h.form(lost...); w.Code != http.StatusConflict && w.Code != http.StatusBadRequest {
			t.Errorf("%q: status %d", lost, w.Code)
		}
	}
	says(t, h.form(form...).Body.String(), "The ticks are not those of the preview", "Nothing was pushed.")
	if q := h.stats(); q.Waiting() != 0 {
		t.Errorf("%+v", q)
	}
}

// A backfill that fails states how many ticks it has pushed.
func TestABackfillThatFails(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	form := answer(t, h.get(past("2029-04-01T23:00", "2029-12-07T23:00")))
	changes := 0
	h.board = h.over(func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if call.Method == "ChangeSchedules" {
			if changes++; changes == 3 {
				return errors.New("refused by the test")
			}
		}
		return next(ctx)
	}, Options{})
	w := h.form(form...)
	if w.Code < http.StatusInternalServerError {
		t.Errorf("status %d", w.Code)
	}
	says(t, w.Body.String(), "200 of 250 ticks are pushed", "refused by the test")
}

// A preview needs the right to push, and a request of the dashboard's own pages.
func TestAPreviewOfABackfillNeedsTheRight(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb == httpapi.VerbRunSchedule {
			return errors.New("no")
		}
		return nil
	}}})
	h.schedule("orders", "a", "nightly", ticks(core.TickMissed))
	saysNot(t, h.get("/schedule?q=orders&name=nightly&id=a"), "make up", "Backfill")
	for _, target := range []string{past("2029-12-20T23:00", "2029-12-25T23:00"), past("", "")} {
		if w := answerOf(h.board, request(http.MethodGet, target, nil)); w.Code != http.StatusForbidden {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}

	h = newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	r := request(http.MethodGet, past("2029-12-20T23:00", "2029-12-25T23:00"), nil)
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if w := answerOf(h.board, r); w.Code != http.StatusForbidden {
		t.Errorf("from another site: status %d", w.Code)
	}
}
