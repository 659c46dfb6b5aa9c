package httpapi

import (
	"encoding/base64"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

// pastRow is a record as clients read it.
type pastRow struct {
	ID           string    `json:"id"`
	DoneAt       time.Time `json:"done_at"`
	Node         string    `json:"node"`
	StartedAt    time.Time `json:"started_at"`
	Took         float64   `json:"took_seconds"`
	Score        float64   `json:"score"`
	PayloadCount int       `json:"payload_count"`
	Attempt      int       `json:"attempt"`
	ResultBytes  int       `json:"result_bytes"`
	Result       string    `json:"result"`
	Base64       string    `json:"result_base64"`
	Cursor       string    `json:"cursor"`
}

// done pushes a job of two payloads, ends it as done with a result, and records that.
func (h *house) done(id, result string) {
	h.t.Helper()
	h.push(id, 0, "p", "q")
	index := core.ShardOf(id, houseShards)
	claims := h.turn(index, 1)
	if len(claims) != 1 {
		h.t.Fatalf("%d claims of %q", len(claims), id)
	}

	settled := core.RetryPolicy{}.Settlement(&claims[0], &core.Outcome{Kind: core.Done}, 0)
	settled.Record(&claims[0], core.Run{
		Started: core.InstantOf(epoch),
		Took:    12 * time.Millisecond,
		Node:    "blue",
		Result:  []byte(result),
	})
	h.turns[index].Keep = core.KeepPast{Age: time.Hour}
	h.turn(index, 0, settled)
}

func TestRecordsAreListedInPagesNewestFirst(t *testing.T) {
	h := newHouse(t, Options{})
	for _, id := range []string{"a", "b", "c"} {
		h.done(id, "secret")
		h.advance(time.Second)
	}

	for query, want := range map[string]string{"?limit=2": "cba", "?limit=2&oldest_first=true": "abc"} {
		first := get[list[pastRow]](h, "/queues/orders/past"+query)
		rest := get[list[pastRow]](h, "/queues/orders/past"+query+"&after="+first.Next)
		var got string
		for _, r := range append(first.Items, rest.Items...) {
			got += r.ID
		}
		if got != want || len(first.Items) != 2 || rest.Next != "" {
			t.Errorf("%s: %s, want %s; then %q", query, got, want, rest.Next)
		}
	}

	from := get[list[pastRow]](h, "/queues/orders/past?from=2030-01-02T03:04:01Z")
	if len(from.Items) != 2 {
		t.Fatalf("from the second: %+v", from)
	}
	want := pastRow{
		ID:           "a",
		DoneAt:       epoch,
		Node:         "blue",
		StartedAt:    epoch,
		Took:         0.012,
		Score:        1,
		PayloadCount: 2,
		Attempt:      1,
		ResultBytes:  6,
		Cursor:       from.Items[1].Cursor,
	}
	if diff := cmp.Diff(want, from.Items[1]); diff != "" {
		t.Errorf("a record (-want +got):\n%s", diff)
	}

	refused(t, "a time that is none",
		answerOf(h.api, request(http.MethodGet, base+"/queues/orders/past?from=yesterday", "")), 400, "bad-request")
	refused(t, "a cursor that is none",
		answerOf(h.api, request(http.MethodGet, base+"/queues/orders/past?after=x", "")), 400, "invalid-cursor")
}

// A result is shown like a payload: only to those who ask for payloads and may see them.
func TestTheResultOfAnIDIsShownWithItsPayloads(t *testing.T) {
	h := newHouse(t, Options{})
	h.done("a", "text")
	h.done("b", "\xff")

	type found struct {
		Queue string
		Past  pastRow
	}
	for target, want := range map[string][2]string{
		"/find?id=a":                         {},
		"/find?id=a&payloads=1":              {"text", ""},
		"/find?queue=orders&id=a&payloads=1": {"text", ""},
		"/find?id=b&payloads=1":              {"", base64.StdEncoding.EncodeToString([]byte("\xff"))},
	} {
		items := get[list[found]](h, target).Items
		if len(items) != 1 || items[0].Queue != "orders" || items[0].Past.Node != "blue" ||
			items[0].Past.Result != want[0] || items[0].Past.Base64 != want[1] {
			t.Errorf("%s: %+v, want the results %q", target, items, want)
		}
	}

	why := get[struct {
		Reason, Text string
		Found        found
	}](h, "/why?queue=orders&id=a")
	if why.Reason != "nothing queued" || !strings.HasPrefix(why.Text, "done 0s ago by server blue, in 12ms; ") ||
		why.Found.Past.ResultBytes != 4 || why.Found.Past.Result != "" {
		t.Errorf("why: %+v", why)
	}
}

func TestRecordsAreRedacted(t *testing.T) {
	const id, secret = "maria.jones@example.com", "result-secret"
	h := newHouse(t, Options{
		RedactID:      func(string, string) string { return "someone" },
		RedactPayload: func(_, _ string, data []byte) []byte { return []byte(strings.Repeat("*", len(data))) },
	})
	h.done(id, secret)
	for _, target := range []string{
		"/queues/orders/past", "/queues/orders/past?limit=1", "/find?payloads=1&id=" + id, "/why?queue=orders&id=" + id,
	} {
		w := answerOf(h.api, request(http.MethodGet, base+target, ""))
		holdsNoSecret(t, target, w.Body.String(), id, secret)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"done_at"`) {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}
