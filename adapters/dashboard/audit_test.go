package dashboard

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
)

// The page of the audit shows who did what, when and why. A queue's page and the overview show who
// paused it.
func TestAudit(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Actor: func(*http.Request) string { return "ann" }}})
	says(t, h.get("/audit"), "No actions yet.")
	h.ended(core.Buried, "boom", numbered("a", 5)...)
	h.push("orders", "waits", 0, "p")
	h.do("op", "pause", "q", "orders", "reason", " the bank\n is away ")
	h.advance(3 * time.Minute)
	h.do("op", "pause", "q", "orders")
	for page, want := range map[string]string{
		"/":               "Paused by ann: “the bank is away”; 1 job waits for 3 min",
		"/queue?q=orders": "‖ Paused 3 min ago by ann: the bank is away",
	} {
		says(t, h.get(page), want)
	}
	h.do("op", "revive", "q", "orders", "id", "a00001", "id", "a00002", "id", "a00003", "id", "a00004", "id", "never")
	page := h.get("/audit")
	says(t, page, "pause orders – ann the bank is away ✓ done",
		"revive orders a00001, a00002, a00003 and 2 more ann – ✓ 4 changed")
	if strings.Index(page, "revive") > strings.Index(page, "the bank is away") {
		t.Error("the newest action is not the first")
	}
	says(t, h.get("/audit?q=orders"), "the bank is away")
	h.do("op", "resume", "q", "orders")
	if page := h.get("/queue?q=orders"); strings.Contains(page, "Paused") {
		t.Error("a queue that was resumed is shown as paused")
	}
}

// The page of an id has the actions that named it, and the audit can be limited to them.
func TestTheAuditOfAnID(t *testing.T) {
	h := newHouse(t, Options{})
	for _, id := range []string{"a", "b"} {
		h.push("orders", id, time.Hour, "p")
	}
	h.do("op", "run-now", "q", "orders", "id", "a", "reason", "a customer asked")
	h.do("op", "bury", "q", "orders", "id", "b")

	says(t, h.get("/id?q=orders&id=a"), "Audit of this id All 0 s ago run now, “a customer asked” ✓ 1 changed")
	saysNot(t, h.get("/id?q=orders&id=a"), "bury, ", "bury ✓")
	audit := h.get("/audit?q=orders&id=a")
	says(t, audit, "run now", "a customer asked")
	saysNot(t, audit, "bury")
	says(t, h.get("/id?q=orders&id=c"), "No operator has named this id")
}
