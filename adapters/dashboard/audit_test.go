package dashboard

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
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

// The audit of an id is that of its queue, and of few actions.
func TestTheAuditOfAnIDIsShort(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{RedactError: func(string, string, string) string { return "hidden" }}})
	h.declare("mails", 1)
	h.push("orders", "a", time.Hour, "p")
	h.push("mails", "a", time.Hour, "p")
	h.do("op", "bury", "q", "mails", "id", "a")
	for range auditRows + 1 {
		h.do("op", "track", "q", "orders", "id", "a")
	}

	page := h.get("/id?q=orders&id=a")
	_, audit, _ := strings.Cut(page, "Audit of this id")
	if n := strings.Count(audit, "<li"); n != auditRows || strings.Contains(words(audit), "bury") {
		t.Errorf("%d actions: %s", n, words(audit))
	}

	h.store.auditFail = errors.New("refused by secret")
	page = h.get("/id?q=orders&id=a")
	says(t, page, "It can't be read: ", "hidden")
	saysNot(t, page, "secret", "No operator has named")
}

// The page of an id names the other queues that have it, not its own.
func TestAnIDNamesItsOtherQueues(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	h.push("orders", "a", time.Hour, "p")
	saysNot(t, h.get("/id?q=orders&id=a"), "also in")
	h.push("mails", "a", time.Hour, "p")
	says(t, h.get("/id?q=orders&id=a"), "also in mails (queued)")
	saysNot(t, h.get("/id?q=orders&id=a"), "also in orders", ", orders (queued)")
}

// The failure of an id names its server. It links to the server only if the user may see that, and a
// held job has no next run.
func TestTheServerOfAFailureIsLinkedForWhoSeesIt(t *testing.T) {
	some := false
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if some && a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	h.declare("secrets", 1)
	h.announce(ports.Node{Owner: "o", Name: "blue", Queues: []string{"secrets"}})
	h.push("orders", "a", 0, "p")
	policy := core.RetryPolicy{Exhausted: core.Hold}
	for index := range houseShards {
		for _, c := range h.turn("orders", index, 10) {
			outcome := core.Outcome{Kind: core.Failed, Error: "boom", Node: "blue"}
			h.turn("orders", index, 0, policy.Settlement(&c, &outcome, 0))
		}
	}
	h.get("/") // a first look
	page := h.get("/id?q=orders&id=a")
	says(t, page, "blue")
	saysNot(t, page, "Next run")
	if !strings.Contains(page, `href="server?node=o"`) {
		t.Errorf("no link to the server: %s", page)
	}

	some = true
	if page := h.get("/id?q=orders&id=a"); strings.Contains(page, "server?node") {
		t.Errorf("a link to a server that the user may not see: %s", page)
	}
}
