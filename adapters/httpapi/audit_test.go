package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// The audit has who did what, when and why, the newest action first; on request only for one
// queue.
func TestAudit(t *testing.T) {
	h := newHouse(t, Options{Actor: func(*http.Request) string { return "ann" }})
	h.dead("boom", "a", "b")
	act := func(path, body, reason string) int {
		r := request(http.MethodPost, base+path, body)
		r.RemoteAddr = "127.0.0.1:999"
		if reason != "" {
			r.Header.Set("Skein-Reason", reason)
		}
		return answerOf(h.api, r).Code
	}
	for what, got := range map[string]int{
		"pause":  act("/queues/orders/pause", "{}", "the bank is away"),
		"revive": act("/queues/orders/morgue/revive", `{"ids":["a","b","c"]}`, ""),
	} {
		if got != http.StatusOK {
			t.Errorf("%s: %d", what, got)
		}
	}
	h.advance(1e9)
	if got := act("/nodes/drain", `{"node":"blue"}`, ""); got != http.StatusNotFound {
		t.Errorf("drain: %d", got)
	}
	rows := get[list[auditRow]](h, "/audit").Items
	if len(rows) != 3 {
		t.Fatalf("%d actions, want 3: %+v", len(rows), rows)
	}
	if rows[0].Error == "" || !rows[0].At.Equal(epoch.Add(1e9)) {
		t.Errorf("the drain is %+v, want an error and its time", rows[0])
	}
	byVerb := map[string]service.AuditRow{}
	for _, r := range rows {
		r.At, r.Took, r.Error = epoch, 0, ""
		byVerb[r.Action] = r.AuditRow
	}
	if diff := cmp.Diff(map[string]service.AuditRow{
		"drain": {
			At:     epoch,
			Action: "drain",
			Actor:  "ann",
			From:   "127.0.0.1",
			IDs:    []string{"blue"},
			Named:  1,
			Ended:  true,
		},
		"revive": {
			At:      epoch,
			Action:  "revive",
			Actor:   "ann",
			From:    "127.0.0.1",
			Queue:   "orders",
			IDs:     []string{"a", "b", "c"},
			Named:   3,
			Ended:   true,
			Handled: 2,
		},
		"pause": {
			At:     epoch,
			Action: "pause",
			Actor:  "ann",
			From:   "127.0.0.1",
			Reason: "the bank is away",
			Queue:  "orders",
			Ended:  true,
		},
	}, byVerb); diff != "" {
		t.Errorf("the audit (-want +got):\n%s", diff)
	}
	if rows := get[list[auditRow]](h, "/audit?queue=orders&limit=1").Items; len(rows) != 1 ||
		rows[0].Queue != "orders" {
		t.Errorf("one of orders is %+v", rows)
	}
}

// Ids that errors quote are hidden where ids are redacted, whichever action they are of.
func TestTheAuditHidesIDsThatErrorsQuote(t *testing.T) {
	h := newHouse(t, Options{
		RedactID:  func(string, string) string { return "someone" },
		CursorKey: []byte(strings.Repeat("k", 32)),
	})
	for id, text := range map[string]string{
		"1": `edit: payload of "maria": the EditFunc failed`,
		"2": `edit all: payload of "maria \"the\" jones": boom`,
		"3": `an error that was cut: "maria jo`,
	} {
		if err := h.store.Audit(t.Context(),
			ports.Action{ID: id, Verb: "edit", Queue: "orders", Ended: true, Error: text}); err != nil {
			t.Fatal(err)
		}
	}
	w := answerOf(h.api, request(http.MethodGet, base+"/audit", ""))
	if text := w.Body.String(); strings.Contains(text, "maria") || strings.Contains(text, "jones") ||
		!strings.Contains(text, "the EditFunc failed") {
		t.Errorf("the audit is %s", text)
	}
}
