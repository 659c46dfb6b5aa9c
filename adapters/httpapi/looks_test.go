package httpapi

import (
	"encoding/base64"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// Jobs that a lost server had claimed wait for the next one, in totals too.
func TestStatsCountOrphansAsWaiting(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("a", 0, "p")
	for index := range houseShards {
		h.turn(index, 9)
	}
	h.advance(time.Hour + time.Minute)
	h.push("b", 0, "p")
	all := get[service.StatsReply](h, "/stats")
	if total := all.Total; total.Length != 1 || total.Claimed != 1 || total.Orphaned != 1 || total.Waiting != 2 ||
		total.Lag != 60 {
		t.Errorf("%+v; want one queued, one orphan that has waited for a minute, and two that wait", total)
	}
	if all.ByWorker["orders"].Counts != all.Total {
		t.Errorf("the queue has %+v, the total %+v", all.ByWorker["orders"], all.Total)
	}
}

// A client that reads Lowkiq's statistics can read these.
func TestStatsHaveLowkiqsNames(t *testing.T) {
	h := newHouse(t, Options{})
	h.dead("boom", "d1", "d2")
	h.failed("boom", "f1")
	h.push("a", 0, "p")
	h.advance(90 * time.Second)
	want := `{"total":{"length":2,"morgue_length":2,"lag":90},` +
		`"by_worker":{"orders":{"length":2,"morgue_length":2,"lag":90}}}`
	type sizes struct {
		Length       int64   `json:"length"`
		MorgueLength int64   `json:"morgue_length"`
		Lag          float64 `json:"lag"`
	}
	got, err := json.Marshal(get[struct {
		Total    sizes            `json:"total"`
		ByWorker map[string]sizes `json:"by_worker"`
	}](h, "/stats"))
	if err != nil || string(got) != want {
		t.Errorf("%s, %v; want %s", got, err, want)
	}
	all := get[service.StatsReply](h, "/stats")
	if all.Total.Retrying != 1 || all.Total.Failed == 0 || !all.AsOf.Equal(epoch.Add(90*time.Second)) ||
		all.ByWorker["orders"].Shards != houseShards {
		t.Errorf("%+v", all)
	}
	one := get[service.QueueReply](h, "/queues/orders")
	if len(one.ShardList) != houseShards || one.Length != 2 || one.ShardList[2].Shard != "orders/2" ||
		one.ShardList[0].Owner != "owner" {
		t.Errorf("%+v", one)
	}
	refused(t, "stats of nothing",
		answerOf(h.api, request(http.MethodGet, base+"/stats?queue=nowhere", "")), 404, "unknown-queue")
}

// hostile are ids and payloads that a path, a form, a spreadsheet or a page could break.
var hostile = []string{
	".", "..", "/", "a/b", "%", "%2F", "?a=b&c", "a b", "+", ";", "#", `"<script>`, "=1+1", "'", "`", "\u202ertl",
	"a\u0301\u0302", "id,with\"csv",
	strings.Repeat("é", core.MaxIDBytes/2), "\U0001F600", "\uFFFD", "null", "../../etc/passwd",
}

func TestHostileIDsAndPayloadsGoThroughUnharmed(t *testing.T) {
	h := newHouse(t, Options{})
	payloads := []string{"", "\xff\xfe", "\x00", "text", `{"a":1}`, "\u2028", "\\ud800", "a\r\nb"}
	for _, id := range hostile {
		h.push(id, 0, payloads...)
	}
	h.end(core.Failed, "boom")
	ids := map[string]int{}
	target := "/queues/orders/jobs?sort=id&payloads=1000&limit=5"
	for after := ""; ; {
		page := get[list[jobRow]](h, target+"&after="+after)
		for _, row := range page.Items {
			ids[row.ID]++
			if diff := cmp.Diff(payloads, texts(t, row.Payloads)); diff != "" {
				t.Errorf("payloads of %q (-want +got):\n%s", row.ID, diff)
			}
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for _, id := range hostile {
		if ids[id] != 1 {
			t.Errorf("%q was listed %d times", id, ids[id])
		}
		query := url.Values{"id": {id}, "queue": {"orders"}, "payloads": {"1000"}}.Encode()
		found := get[list[foundRow]](h, "/find?"+query)
		if len(found.Items) != 1 || found.Items[0].Queued == nil || found.Items[0].Queued.ID != id ||
			len(found.Items[0].Queued.Payloads) != len(payloads) {
			t.Errorf("find %q: %+v", id, found)
		}
		if why := get[whyReply](h, "/why?"+url.Values{
			"id":    {id},
			"queue": {"orders"},
		}.Encode()); why.Reason != "backoff" || why.Found.Queued.ID != id {
			t.Errorf("why %q: %+v", id, why)
		}
		if reply := post[service.BulkReply](h, "/queues/orders/jobs/bury",
			service.BulkBody{IDs: []string{id}}); reply.Handled != 1 {
			t.Errorf("bury %q: %+v", id, reply)
		}
		edited := post[service.BulkReply](h, "/queues/orders/morgue/edit", service.EditBody{
			ID: id,
			Edits: []service.Replacement{{
				Old: service.OctetsOf([]byte("\xff\xfe")),
				New: service.OctetsOf([]byte("\xfe")),
			}},
		})
		dead := get[list[foundRow]](h, "/find?"+query).Items[0].Dead
		if edited.Handled != 1 || dead == nil || !slices.Contains(texts(t, dead.Payloads), "\xfe") ||
			slices.Contains(texts(t, dead.Payloads), "\xff\xfe") {
			t.Errorf("edit %q: %+v, %+v", id, edited, dead)
		}
		some := []service.LetterPayloads{{
			ID:       id,
			Payloads: []service.Octets{service.OctetsOf([]byte("\xfe")), service.OctetsOf(nil)},
		}}
		if reply := post[service.BulkReply](h, "/queues/orders/morgue/purge",
			map[string]any{"payloads": some}); reply.Handled != 1 {
			t.Errorf("purge payloads of %q: %+v", id, reply)
		}
		if left := get[list[foundRow]](h,
			"/find?"+query).Items[0].Dead; len(left.Payloads) != len(payloads)-2 {
			t.Errorf("%d payloads of %q are left", len(left.Payloads), id)
		}
	}
}

// texts returns payloads as a client reads them: from data, or else data_base64.
func texts(t *testing.T, payloads []payloadRow) (list []string) {
	t.Helper()
	for _, p := range payloads {
		if p.Data != nil {
			list = append(list, *p.Data)
			continue
		}
		data, err := base64.StdEncoding.DecodeString(*p.Base64)
		if err != nil {
			t.Error(err)
		}
		list = append(list, string(data))
	}
	return list
}

func TestListsTakeTheirParameters(t *testing.T) {
	h := newHouse(t, Options{})
	h.failed("boom", "b-1", "b-2")
	for n, id := range []string{"a-1", "a-2", "a-3", "c"} {
		h.push(id, time.Duration(n+2)*time.Hour, "p", "q")
	}
	at := func(d time.Duration) string { return url.QueryEscape(epoch.Add(d).Format(time.RFC3339)) }
	shard := core.ShardOf("a-2", houseShards)
	var there []string
	for _, id := range []string{"a-1", "a-2", "a-3", "b-1", "b-2", "c"} {
		if core.ShardOf(id, houseShards) == shard {
			there = append(there, id)
		}
	}
	for query, want := range map[string]string{
		"":                                  "b-1 b-2 a-1 a-2 a-3 c",
		"desc=true":                         "c a-3 a-2 a-1 b-2 b-1",
		"limit=2":                           "b-1 b-2",
		"fresh=true":                        "a-1 a-2 a-3 c",
		"sort=id":                           "a-1 a-2 a-3 b-1 b-2 c",
		"sort=id&prefix=a-":                 "a-1 a-2 a-3",
		"sort=id&prefix=a-&desc=1&limit=1":  "a-3",
		"sort=id&from=b":                    "b-1 b-2 c",
		"sort=retrying":                     "b-1 b-2",
		"sort=retrying_id&from=b-2":         "b-2",
		"sort=retries&from=1":               "b-1 b-2",
		"sort=retries&from=2":               "",
		"from=" + at(3*time.Hour):           "a-2 a-3 c",
		"desc=true&from=" + at(3*time.Hour): "a-2 a-1 b-2 b-1",
		"sort=id&shard=0&shard=1&shard=2":   "a-1 a-2 a-3 b-1 b-2 c",
		"sort=id&shard=" + string(rune('0'+shard)): strings.Join(there, " "),
	} {
		var ids []string
		page := get[list[jobRow]](h, "/queues/orders/jobs?"+query)
		for _, row := range page.Items {
			ids = append(ids, row.ID)
			if row.Payloads != nil {
				t.Errorf("%s: payloads were not asked for", query)
			}
		}
		if got := strings.Join(ids, " "); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{
		"limt=1":                            "bad-request",
		"limit=0":                           "bad-request",
		"limit=1001":                        "bad-request",
		"limit=-1":                          "bad-request",
		"limit=a":                           "bad-request",
		"limit=1&limit=2":                   "bad-request",
		"desc=maybe":                        "bad-request",
		"sort=size":                         "bad-request",
		"after=!":                           "invalid-cursor",
		"after=AA":                          "invalid-cursor",
		"shard=3":                           "invalid-options",
		"from=yesterday":                    "bad-request",
		"sort=retries&from=x":               "bad-request",
		"prefix=a":                          "invalid-options",
		"sort=retries&fresh=1":              "invalid-options",
		"%zz":                               "bad-request",
		"sort=id&from=%ff":                  "bad-request",
		"a;b":                               "bad-request",
		"payloads=a":                        "bad-request",
		"payloads=-1":                       "bad-request",
		"payloads=1001":                     "bad-request",
		"shard=a":                           "bad-request",
		"after=!&from=2026-01-02T15:04:05Z": "invalid-cursor",
	} {
		refused(t, query, answerOf(h.api, request(http.MethodGet, base+"/queues/orders/jobs?"+query, "")), 400, want)
	}
	if _, err := h.store.Declare(t.Context(), declarePlain); err != nil {
		t.Fatal(err)
	}
	for target, want := range map[string]string{
		"/stats?queu=orders":                    "bad-request",
		"/queues/orders/history?step=a":         "bad-request",
		"/queues/orders/history?from=yesterday": "bad-request",
		"/queues/orders/groups?limit=0":         "bad-request",
	} {
		refused(t, target, answerOf(h.api, request(http.MethodGet, base+target, "")), 400, want)
	}
	refused(t, "by id",
		answerOf(h.api, request(http.MethodGet, base+"/queues/plain/jobs?sort=id", "")), 409, "queue-mismatch")
}

// A step has a name, or is a duration.
func TestHistoryHasSteps(t *testing.T) {
	h := newHouse(t, Options{})
	var records []ports.Record
	for _, ago := range []time.Duration{0, time.Minute, 2 * time.Hour, 23 * time.Hour} {
		records = append(records, ports.Record{
			Queue: "orders", Minute: core.InstantOf(h.now.Add(-ago)).Minute(), Stats: core.Stats{Processed: 1},
		})
	}
	if err := h.store.Record(t.Context(), ports.RecordRequest{Owner: "o", Records: records}); err != nil {
		t.Fatal(err)
	}

	for _, tt := range []struct {
		query string
		step  time.Duration
	}{
		{"", time.Minute},
		{"?step=minute", time.Minute},
		{"?step=hour", time.Hour},
		{"?step=day", inspect.Day},
		{"?step=24h", inspect.Day},
		{"?step=15m", 15 * time.Minute},
	} {
		got := map[time.Time]uint64{}
		for _, row := range get[list[historyRow]](h, "/queues/orders/history"+tt.query).Items {
			got[row.At] = row.Processed
		}
		want := map[time.Time]uint64{}
		for _, r := range records {
			want[r.Minute.Time().Truncate(tt.step)]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.query, diff)
		}
	}

	for step, problem := range map[string]string{
		"week": "bad-request", "1d": "bad-request",
		"25h": "invalid-options", "90s": "invalid-options", "-1m": "invalid-options",
	} {
		target := "/queues/orders/history?step=" + step
		refused(t, target, answerOf(h.api, request(http.MethodGet, base+target, "")), 400, problem)
	}
}

// The same rows come in each format, and the values beside them come in headers.
func TestListsComeInThreeFormats(t *testing.T) {
	h := newHouse(t, Options{})
	h.dead("boom, \"said\" he\nthere", "a", "b,\"c", "d")
	for accept, want := range map[string]string{
		"":                                        "application/json",
		"*/*":                                     "application/json",
		"application/*":                           "application/json",
		"text/html, */*;q=0.1":                    "application/json",
		"application/jsonl":                       "application/jsonl",
		"application/x-ndjson":                    "application/jsonl",
		"text/csv":                                "text/csv",
		"text/*":                                  "text/csv",
		"application/json;q=0.5, text/csv":        "text/csv",
		"*/*, application/json;q=0":               "application/jsonl",
		"text/csv;q=0, */*":                       "application/json",
		"application/x-jsonlines":                 "application/jsonl",
		"text/csv;q=2, application/json;q=0.1":    "application/json",
		"text/csv;q=-1, application/json;q=0.1":   "application/json",
		"text/csv;q=NaN, application/json;q=0.1":  "application/json",
		"text/csv;q=high, application/json;q=0.1": "application/json",
		"/, text/csv":                             "text/csv",
	} {
		r := request(http.MethodGet, base+"/queues/orders/morgue?limit=2&payloads=1", "")
		r.Header.Set("Accept", accept)
		w := answerOf(h.api, r)
		kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
		if kind != want || w.Code != 200 || w.Header().Get("Skein-Next") == "" || w.Header().Get("Skein-As-Of") == "" ||
			w.Header().Get("Vary") != "Accept" {
			t.Errorf("%s: %d %v", accept, w.Code, w.Header())
			continue
		}
		if ids := idsIn(t, kind, w.Body.String()); strings.Join(ids, "|") != `a|b,"c` {
			t.Errorf("%s: %q in %s", accept, ids, w.Body)
		}
	}
	r := request(http.MethodGet, base+"/stats", "")
	r.Header.Set("Accept", "text/csv")
	refused(t, "stats as CSV", answerOf(h.api, r), 406, "not-acceptable")
}

// idsIn reads the ids of dead letters in a format.
func idsIn(t *testing.T, kind, text string) (ids []string) {
	t.Helper()
	switch kind {
	case "text/csv":
		lines, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil || len(lines) < 1 || lines[0][0] != "id" || lines[0][2] != "last_error" {
			t.Fatalf("%v: %q", err, lines)
		}
		for _, line := range lines[1:] {
			if ids = append(ids, line[0]); line[2] != "boom, \"said\" he\nthere" {
				t.Errorf("line %q", line)
			}
		}
	case "application/jsonl":
		for line := range strings.Lines(text) {
			var row deadRow
			if err := json.Unmarshal([]byte(line), &row); err != nil {
				t.Fatal(err)
			}
			ids = append(ids, row.ID)
		}
	default:
		var page list[deadRow]
		if err := json.Unmarshal([]byte(text), &page); err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Items {
			ids = append(ids, row.ID)
		}
	}
	return ids
}

// A polled reply is sent again when it has changed, and only then.
func TestWhatIsPolledHasAnETag(t *testing.T) {
	h := newHouse(t, Options{})
	h.dead("boom", "a")
	h.schedule("a", "nightly")
	for _, route := range table() {
		if route.action() {
			continue
		}
		target, _ := route.target(t)
		first := answerOf(h.api, request(http.MethodGet, target, ""))
		tag := first.Header().Get("ETag")
		if tag == "" {
			t.Errorf("%s has no ETag", target)
			continue
		}
		for header, want := range map[string]int{
			tag:                           304,
			`"other"`:                     200,
			`"other", ` + tag:             304,
			"*":                           304,
			strings.TrimPrefix(tag, "W/"): 304,
		} {
			r := request(http.MethodGet, target, "")
			r.Header.Set("If-None-Match", header)
			w := answerOf(h.api, r)
			if w.Code != want || want == 304 && w.Body.Len() > 0 || w.Header().Get("ETag") != tag {
				t.Errorf("%s with %s: %d %q, want %d", target, header, w.Code, w.Header().Get("ETag"), want)
			}
		}
	}
	before := answerOf(h.api, request(http.MethodGet, base+"/queues/orders", "")).Header().Get("ETag")
	post[service.Done](h, "/queues/orders/pause", service.NoBody{})
	if after := answerOf(h.api,
		request(http.MethodGet, base+"/queues/orders", "")); after.Header().Get("ETag") == before ||
		!strings.Contains(after.Body.String(), `"paused":true`) {
		t.Errorf("the queue was paused: %s", after.Body)
	}
}

// A page of large payloads ends early, and the next continues.
func TestAPageOfLargePayloadsEndsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		large := strings.Repeat("x", 1<<20)
		ids := numbered("l", 20)
		for _, id := range ids {
			h.push(id, time.Hour, large)
		}
		var got []string
		pages := 0
		for after, more := "", true; more; pages++ {
			page := get[list[jobRow]](h, "/queues/orders/jobs?sort=id&payloads=1&after="+after)
			for _, row := range page.Items {
				got = append(got, row.ID)
			}
			after = page.Next
			more = after != ""
		}
		if !slices.Equal(got, ids) || pages != 3 {
			t.Errorf("%d pages: %v", pages, got)
		}
	})
}
