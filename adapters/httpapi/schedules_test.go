package httpapi

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// scheduleNamesOf returns the names and ids of rows.
func scheduleNamesOf(rows []scheduleRow) (list []string) {
	for _, row := range rows {
		list = append(list, row.Name+" "+row.ID)
	}
	return list
}

func TestSchedulesAreListed(t *testing.T) {
	h := newHouse(t, Options{})
	for _, id := range []string{"b", "a"} {
		h.schedule(id, "nightly")
	}
	h.schedule("a", "bill", func(d *core.Declaration) {
		d.Meta, d.Score, d.FixedScore = []byte("trace"), 7, true
		d.Catchup = core.Catchup{Within: time.Hour}
	})
	for query, want := range map[string][]string{
		"": {"bill a", "nightly a", "nightly b"}, "id=a": {"bill a", "nightly a"}, "name=nightly": {"nightly a", "nightly b"},
		"name=nightly&id=b": {"nightly b"}, "name=other": nil,
	} {
		page := get[list[scheduleRow]](h, "/queues/orders/schedules?"+query)
		if diff := cmp.Diff(want, scheduleNamesOf(page.Items)); diff != "" || page.Items == nil || page.Next != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}

	var all []string
	for next, more := "", true; more; more = next != "" {
		page := get[list[scheduleRow]](h, "/queues/orders/schedules?limit=2&after="+next)
		all, next = append(all, scheduleNamesOf(page.Items)...), page.Next
	}
	if diff := cmp.Diff([]string{"bill a", "nightly a", "nightly b"}, all); diff != "" {
		t.Errorf("by pages (-want +got):\n%s", diff)
	}
	for _, after := range []string{"x", "AAAA", "bm8gbmFtZQ/"} {
		target := base + "/queues/orders/schedules?after=" + after
		refused(t, target, answerOf(h.api, request(http.MethodGet, target, "")), 400, "invalid-cursor")
	}

	row := get[list[scheduleRow]](h, "/queues/orders/schedules?name=bill&payloads=1").Items[0]
	next := epoch.Truncate(time.Hour).Add(30 * time.Minute)
	if row.Words != "every hour at minute 30" || row.Zone != "UTC" || !row.Next.Equal(next) || !row.Due.Equal(next) || row.CatchupMost != 1 || row.CatchupWithin != 3600 ||
		*row.Score != 7 || *row.Payload.Data != "p" || *row.Payload.Meta != "trace" || row.By != "code" || !row.ChangedAt.Equal(epoch) {
		t.Errorf("%+v", row)
	}
	if row := get[list[scheduleRow]](h, "/queues/orders/schedules?name=bill").Items[0]; row.Payload != nil {
		t.Errorf("a payload is shown to a request for none: %+v", row.Payload)
	}
	names := get[list[scheduleNameRow]](h, "/queues/orders/schedules/names?limit=1")
	rest := get[list[scheduleNameRow]](h, "/queues/orders/schedules/names?after="+names.Next)
	if len(names.Items) != 1 || names.Items[0].Name != "bill" || len(rest.Items) != 1 || rest.Items[0].Count != 2 || rest.Items[0].First.ID != "a" {
		t.Errorf("%+v, then %+v", names, rest)
	}

	csv := request(http.MethodGet, base+"/queues/orders/schedules", "")
	csv.Header.Set("Accept", "text/csv")
	if text := answerOf(h.api, csv).Body.String(); !strings.HasPrefix(text, "name,id,shard,spec,words,") || strings.Count(text, "\n") != 4 {
		t.Errorf("as CSV: %s", text)
	}
}

func TestAScheduleIsShownWithItsNextTicks(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("a", "nightly", func(d *core.Declaration) { d.Tags, _ = core.NewTags("vip") })
	one := get[scheduleRow](h, "/queues/orders/schedule?id=a&name=nightly&ticks=2")
	want := []service.NextTick{
		{At: time.Date(2030, 1, 2, 3, 30, 0, 0, time.UTC), Local: "2030-01-02T03:30:00Z"},
		{At: time.Date(2030, 1, 2, 4, 30, 0, 0, time.UTC), Local: "2030-01-02T04:30:00Z"},
	}
	if diff := cmp.Diff(want, one.NextTicks); diff != "" || !slices.Equal(one.Tags, []string{"vip"}) {
		t.Errorf("%+v (-want +got):\n%s", one, diff)
	}
	if one := get[scheduleRow](h, "/queues/orders/schedule?id=a&name=nightly"); len(one.NextTicks) != 5 {
		t.Errorf("%d ticks, want 5", len(one.NextTicks))
	}
	for query, problem := range map[string]string{"id=b&name=nightly": "unknown-schedule", "id=a&name=other": "unknown-schedule"} {
		target := base + "/queues/orders/schedule?" + query
		refused(t, target, answerOf(h.api, request(http.MethodGet, target, "")), 404, problem)
	}
	for query, problem := range map[string]string{"name=nightly": "invalid-id", "id=a": "invalid-schedule", "id=a&name=nightly&ticks=101": "bad-request"} {
		target := base + "/queues/orders/schedule?" + query
		refused(t, target, answerOf(h.api, request(http.MethodGet, target, "")), 400, problem)
	}
	why := get[whyReply](h, "/why?queue=orders&id=a")
	if why.Reason != "scheduled" || len(why.Schedules) != 1 || why.Schedules[0].Name != "nightly" || !why.Until.Equal(want[0].At) {
		t.Errorf("why: %+v", why)
	}
}

func TestSchedulesAreChangedByRequests(t *testing.T) {
	h := newHouse(t, Options{Actor: func(*http.Request) string { return "ann" }})
	h.schedule("a", "nightly")
	h.schedule("b", "nightly")
	changed := func(action string, body any, want int) {
		t.Helper()
		if r := post[service.ScheduleResult](h, "/queues/orders/schedules/"+action, body); r.Changed != want {
			t.Errorf("%s %+v: %+v; want %d", action, body, r, want)
		}
	}
	one := func() scheduleRow {
		t.Helper()
		return get[scheduleRow](h, "/queues/orders/schedule?id=a&name=nightly&payloads=1")
	}
	type is = map[string]any

	changed("pause", is{"name": "nightly", "note": "audit"}, 2)
	if row := one(); !row.Paused || row.Note != "audit" || row.By != "ann" || row.PausedBy != "ann" || !row.PausedAt.Equal(epoch) || !row.Due.IsZero() {
		t.Errorf("paused: %+v", row)
	}
	changed("resume", is{"id": "a"}, 1)
	changed("resume", is{"id": "a"}, 0)
	changed("run", is{"id": "a", "name": "nightly"}, 1)
	if row := one(); row.Fired != 1 || row.Recent[0].Outcome != "by hand" {
		t.Errorf("after a run: %+v", row)
	}
	changed("edit", is{"id": "a", "cron": "0 23 * * *", "zone": "UTC", "payload": is{"data": "q"}, "jitter_seconds": 1.5, "catchup": is{"most": 1, "within_seconds": 60}, "skip": true}, 1)
	if row := one(); row.Spec != "cron 0 23 * * * UTC" || row.Words != "each day at 23:00" || *row.Payload.Data != "q" || row.Jitter != 1.5 || row.CatchupWithin != 60 || !row.Skip || !row.Edited {
		t.Errorf("after an edit: %+v", row)
	}
	changed("edit", is{"name": "nightly", "zone": "Asia/Tokyo"}, 2)
	changed("edit", is{"name": "nightly", "cron": "0 22 * * *"}, 2)
	if row := one(); row.Spec != "cron 0 22 * * * Asia/Tokyo" {
		t.Errorf("after edits of one part: %+v", row)
	}
	changed("edit", is{"id": "a", "every_seconds": 900, "from": "2030-01-01T00:05:00Z"}, 1)
	if row := one(); row.Words != "every 15 minutes" || row.NextTicks[0].Local != "2030-01-02T03:05:00Z" {
		t.Errorf("after an edit: %+v", row)
	}

	day := is{"id": "a", "name": "nightly", "from": "2030-01-02T00:00:00Z", "to": "2030-01-02T01:00:00Z", "dry_run": true}
	for _, dry := range []bool{true, false} {
		day["dry_run"] = dry
		if r := post[service.BackfillReply](h, "/queues/orders/schedules/backfill", day); len(r.Ticks) != 4 || r.Ticks[0].Local != "2030-01-02T00:05:00Z" {
			t.Errorf("a backfill, dry %v: %+v", dry, r)
		}
	}
	want := service.BackfillRow{From: epoch.Truncate(24 * time.Hour), To: epoch.Truncate(24 * time.Hour).Add(time.Hour), Ticks: 4, By: "ann", At: epoch}
	if row := one(); row.Backfill == nil || *row.Backfill != want {
		t.Errorf("the last backfill: %+v, want %+v", row.Backfill, want)
	}
	changed("remove", is{"name": "nightly"}, 2)

	audit := get[list[auditRow]](h, "/audit?queue=orders").Items
	var verbs []string
	for _, a := range audit {
		verbs = append(verbs, a.Action)
		if a.Actor != "ann" {
			t.Errorf("%s by %q", a.Action, a.Actor)
		}
	}
	order := []string{
		"remove schedule", "backfill schedule", "edit schedule", "edit schedule", "edit schedule", "edit schedule", "run schedule", "resume schedule", "resume schedule", "pause schedule",
	}
	if diff := cmp.Diff(order, verbs); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
}

func TestBadChangesOfSchedulesAreRefused(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("a", "nightly")
	for _, tt := range []struct {
		action, body string
		status       int
		problem      string
	}{
		{"pause", `{}`, 400, "invalid-options"},
		{"pause", `{"name":""}`, 400, "bad-request"},
		{"pause", `{"name":"other"}`, 404, "unknown-schedule"},
		{"pause", `{"id":"b"}`, 404, "unknown-schedule"},
		{"pause", `{"id":"a","note":"` + strings.Repeat("x", 1025) + `"}`, 400, "invalid-options"},
		{"edit", `{"id":"a"}`, 400, "invalid-options"},
		{"edit", `{"id":"a","cron":"0 6 * * *","every_seconds":60}`, 400, "invalid-options"},
		{"edit", `{"id":"a","zone":"UTC","every_seconds":60}`, 400, "invalid-options"},
		{"edit", `{"id":"a","from":"2030-01-01T00:00:00Z"}`, 400, "invalid-options"},
		{"edit", `{"id":"a","cron":"0 25 * * *","zone":"UTC"}`, 400, "invalid-schedule"},
		{"edit", `{"id":"a","cron":"0 6 * * *","zone":"Nowhere/Land"}`, 400, "invalid-schedule"},
		{"edit", `{"id":"a","every_seconds":0.5}`, 400, "invalid-schedule"},
		{"edit", `{"id":"a","every_seconds":1e300}`, 400, "bad-request"},
		{"edit", `{"id":"a","jitter_seconds":-1}`, 400, "bad-request"},
		{"edit", `{"id":"a","jitter_seconds":86401}`, 400, "invalid-schedule"},
		{"edit", `{"id":"a","catchup":{"most":2}}`, 400, "invalid-schedule"},
		{"edit", `{"id":"a","catchup":{"most":1,"within_seconds":-1}}`, 400, "bad-request"},
		{"edit", `{"id":"a","payload":{}}`, 400, "bad-request"},
		{"backfill", `{"id":"a","name":"nightly","from":"2030-01-01T00:00:00Z","to":"2031-01-01T00:00:00Z"}`, 400, "invalid-options"},
		{"backfill", `{"id":"a","name":"other","from":"2030-01-01T00:00:00Z","to":"2030-01-02T00:00:00Z"}`, 404, "unknown-schedule"},
		{"backfill", `{"id":"","name":"nightly"}`, 400, "invalid-id"},
	} {
		w := answerOf(h.api, request(http.MethodPost, base+"/queues/orders/schedules/"+tt.action, tt.body))
		refused(t, tt.action+" "+tt.body, w, tt.status, tt.problem)
	}
	if row := get[scheduleRow](h, "/queues/orders/schedule?id=a&name=nightly"); row.Paused || row.Edited || row.ChangedAt != epoch {
		t.Errorf("a refused request has changed it: %+v", row)
	}
}

// Schedules are redacted as jobs are, also in errors and cursors.
func TestSchedulesAreRedacted(t *testing.T) {
	h := newHouse(t, Options{
		RedactID:      func(string, string) string { return "someone" },
		RedactPayload: func(string, string, []byte) []byte { return []byte("something") },
		RedactError:   func(_, _, text string) string { return strings.ReplaceAll(text, "Smith", "…") },
	})
	for _, id := range []string{"secret-1", "secret-2"} {
		h.schedule(id, "nightly", func(d *core.Declaration) {
			d.Data, d.Meta = []byte("secret payload"), []byte("secret meta")
			d.Tags, _ = core.NewTags("secret-tag")
		})
	}
	if _, err := inspect.New(h.store, inspect.Options{}).PauseSchedules(t.Context(), "orders",
		inspect.ScheduleSelection{Name: "nightly"}, `Smith said "secret-1" waits`); err != nil {
		t.Fatal(err)
	}
	var answers []*httptest.ResponseRecorder
	for _, target := range []string{
		"/queues/orders/schedules?payloads=1", "/queues/orders/schedules?limit=1", "/queues/orders/schedules/names",
		"/queues/orders/schedule?id=secret-1&name=nightly&payloads=1", "/why?queue=orders&id=secret-1", "/audit",
	} {
		answers = append(answers, answerOf(h.api, request(http.MethodGet, base+target, "")))
	}
	for action, body := range map[string]string{"edit": `{"name":"nightly","catchup":{"most":2}}`, "run": `{"name":"nightly"}`} {
		answers = append(answers, answerOf(h.api, request(http.MethodPost, base+"/queues/orders/schedules/"+action, body)))
	}
	for at, w := range answers {
		if text := w.Body.String(); strings.Contains(text, "secret") || strings.Contains(text, "Smith") {
			t.Errorf("answer %d: %s", at, text)
		}
	}

	var page list[scheduleRow]
	if err := json.Unmarshal(answers[1].Body.Bytes(), &page); err != nil || page.Next == "" {
		t.Fatalf("%v: %s", err, answers[1].Body)
	}
	rest := get[list[scheduleRow]](h, "/queues/orders/schedules?after="+page.Next)
	if audit := answers[5].Body.String(); !strings.Contains(audit, `schedule nightly: note \"…\"`) {
		t.Errorf("the audit: %s", audit)
	}
	if len(rest.Items) != 1 || rest.Items[0].ID != "someone" || rest.Items[0].Note != `… said "…" waits` {
		t.Errorf("%+v", rest)
	}
}

// A note may name an id without quotes, so it is hidden with ids unless errors have their own rule.
func TestTheNoteOfAPauseIsHiddenWithIDs(t *testing.T) {
	h := newHouse(t, Options{RedactID: func(string, string) string { return "someone" }})
	h.schedule("secret-1", "nightly")
	if _, err := inspect.New(h.store, inspect.Options{}).PauseSchedules(t.Context(), "orders",
		inspect.ScheduleSelection{Name: "nightly"}, "secret-1 asked us"); err != nil {
		t.Fatal(err)
	}
	rows := get[list[scheduleRow]](h, "/queues/orders/schedules")
	if len(rows.Items) != 1 || rows.Items[0].Note != "…" {
		t.Errorf("%+v", rows)
	}
}

// Large payloads end a page early.
func TestPagesOfSchedulesAreBoundedInBytes(t *testing.T) {
	h := newHouse(t, Options{})
	large := []byte(strings.Repeat("x", core.MaxScheduleDataBytes))
	ids := numbered("a", 200)
	for _, id := range ids {
		h.schedule(id, "nightly", func(d *core.Declaration) { d.Data = large })
	}
	var lengths []int
	for next, more := "", true; more; more = next != "" {
		page := get[list[scheduleRow]](h, "/queues/orders/schedules?limit=1000&payloads=1&after="+next)
		lengths, next = append(lengths, len(page.Items)), page.Next
	}
	if diff := cmp.Diff([]int{128, 72}, lengths); diff != "" {
		t.Errorf("the lengths of the pages (-want +got):\n%s", diff)
	}
}
