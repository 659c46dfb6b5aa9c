package dashboard

import (
	"errors"
	"fmt"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// cause returns the row of an error on a page.
func cause(t testing.TB, page, name string) string {
	t.Helper()
	_, from, found := strings.Cut(page, `<tr data-k="`+html.EscapeString(name)+`"`)
	if !found {
		t.Fatalf("no row of %q in: %s", name, words(page))
	}
	row, _, _ := strings.Cut(from, "</tr>")
	return row
}

func TestErrorsAreOnePage(t *testing.T) {
	h := newHouse(t, Options{})
	h.declare("mails", 1)
	h.announce(ports.Node{Owner: "o", Name: "blue", Version: "v1.5.0", Queues: []string{"orders"}})
	h.advance(time.Minute)
	h.buried("charge #: #", 3)
	h.ended(core.Failed, "charge 17: 503", "a", "b")
	h.hold("no such mailbox", "held")
	h.push("mails", "m", 0, "p")
	h.end("mails", core.Failed, "charge 4: 502")

	page := h.get("/errors")
	says(t, page, "3 jobs retry, 3 ids are dead, 1 job is held: 2 causes in 2 queues",
		"All 7 jobs and dead letters were read.")
	both := cause(t, page, "charge #: #")
	says(t, both, "mails, orders", "new v1.5.0", "Open")
	saysNot(t, both, "≥", "Revive") // there are two queues
	held := cause(t, page, "no such mailbox")
	says(t, held, "Release 1 …", "Bury …")
	saysNot(t, held, "Run now")

	open := h.get("/errors?open=" + url.QueryEscape("charge #: #"))
	says(t, open, "orders : 3 dead Revive 3 … Purge …", "orders : 2 jobs retry Run now 2 … Bury …",
		"mails : 1 job retries Run now 1 … Bury …", "Close")
	if !strings.Contains(open, `href="id?id=a&amp;q=orders"`) || !strings.Contains(open, `href="id?id=m&amp;q=mails"`) {
		t.Errorf("no links to its jobs in: %s", words(open))
	}

	mine := h.get("/errors?q=orders")
	says(t, mine, "Errors of orders", "Revive 3 … Purge … Run now 2 … Bury …", "2 causes in 1 queue")
	says(t, h.get("/errors?state=held"), "1 cause in 1 queue")
	says(t, h.get("/errors?state=lost&since=ever"), "2 causes in 2 queues") // unknown values choose all
	says(t, h.get("/errors?text=mailbox"), "1 cause in 1 queue")
	says(t, h.get("/errors?tag=none"), "by these filters")
	says(t, h.get("/errors?since=1+h&state=dead"), "1 cause")
	h.advance(2 * time.Hour)
	h.board.looker.acted()
	says(t, h.get("/errors?since=1+h&state=dead"), "0 causes")
	if w := answerOf(h.board, request(http.MethodGet, "/errors?q=nowhere", nil)); w.Code != http.StatusNotFound {
		t.Errorf("an unknown queue: %d", w.Code)
	}
}

// The preview names the group and its exact count, and leads back to the page with its filters.
func TestAPreviewNamesTheGroup(t *testing.T) {
	h := newHouse(t, Options{})
	h.buried("charge #: #", 1200)
	h.ended(core.Failed, "charge 17: 503", "a", "b")
	h.hold("charge 18: 503", "c")
	h.advance(time.Second)

	sheet := h.get("/sheet?" + url.Values{
		"q": {"orders"}, "op": {"revive"}, "group": {"charge #: #"}, "back": {"errors"}, "back.all": {"1"},
		"back.since": {"24 h"},
	}.Encode())
	says(t, sheet, "Revive dead letters of orders in the group “charge #: #”", "1,200 match of 1,200")
	if !strings.Contains(sheet, `href="errors?since=24&#43;h"`) || !strings.Contains(sheet, `value="1200"`) {
		t.Errorf("%s", sheet)
	}

	jobs := url.Values{
		"q": {"orders"}, "op": {"bury"}, "group": {"charge #: #"}, "state": {"retrying"}, "back": {"errors"},
		"back.all": {"1"}, "back.open": {"charge #: #"},
	}
	sheet = h.get("/sheet?" + jobs.Encode())
	says(t, sheet, "Bury jobs that retry of orders in the group “charge #: #”", "2 match of 3")

	form := []string{"bulk", "1", "confirm", "2", "before", h.clock().Format(time.RFC3339Nano)}
	for name, values := range jobs {
		form = append(form, name, values[0])
	}
	w := h.form(form...)
	if to := w.Header().Get("Location"); to != "errors?did=bury&n=2" {
		t.Fatalf("leads to %q: %d %s", to, w.Code, words(w.Body.String()))
	}
	if s := h.stats(); s.Dead != 1202 || s.Held != 1 || s.Retrying != 1 {
		t.Errorf("%+v", s.Counts)
	}
}

// A count of a sample is marked as one.
func TestErrorsOfASampleAreMarked(t *testing.T) {
	h := newHouse(t, Options{})
	ids := numbered("f", 10_050)
	for _, id := range ids {
		h.push("orders", id, 0, "p")
	}
	h.end("orders", core.Failed, "charge 17: 503")
	h.buried("gone", 20)
	page := h.get("/errors")
	says(t, page, "A sample: of 10,070 jobs and dead letters 10,000 were read", "≥ 9,980")
	says(t, cause(t, page, "gone"), "20")
}

// Actions that the user may not take are not offered, and rows of queues that he may not see are
// missing.
func TestErrorsAreOfTheUsersQueues(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "mails" || a.Verb == httpapi.VerbPurge {
			return errors.New("no")
		}
		return nil
	}}})
	h.declare("mails", 1)
	h.ended(core.Buried, "secret", "s")
	h.push("mails", "m", 0, "p")
	h.end("mails", core.Buried, "boom")
	page := h.get("/errors")
	says(t, page, "1 cause in 1 queue", "Revive 1 …")
	saysNot(t, page, "secret", "Purge")
	if w := answerOf(h.board, request(http.MethodGet, "/errors?q=orders", nil)); w.Code != http.StatusForbidden {
		t.Errorf("another queue: %d", w.Code)
	}
}

// With redacted errors, no text is on the page, and actions are on keys.
func TestErrorsOnThePageAreRedacted(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{
		RedactError: func(string, string, string) string { return "hidden" },
		RedactID:    func(string, string) string { return "someone" },
	}})
	h.ended(core.Failed, "secret 17", "a")
	page := h.get("/errors")
	says(t, page, "hidden", "Run now 1 …")
	saysNot(t, page, "secret", `name="text"`)
	h.advance(time.Second)
	key := regexp.MustCompile(`sheet\?[^"]*group=([^"&]+)`).FindStringSubmatch(page)
	if key == nil {
		t.Fatal(page)
	}
	group, err := url.QueryUnescape(key[1])
	if err != nil {
		t.Fatal(err)
	}
	open := h.get("/errors?open=" + url.QueryEscape(group))
	saysNot(t, open, "secret", `href="id?`)
	sheet := h.get("/sheet?" + url.Values{"q": {"orders"}, "op": {"run-now"}, "group": {group}}.Encode())
	says(t, sheet, "of a group of orders", "1 are not due yet")
	saysNot(t, sheet, "secret")
}

func TestStepsAreDrawn(t *testing.T) {
	for want, steps := range map[string][]int64{
		"": {0, 0}, "M0.00 22v-21.0h2.2v21.0M2.75 22v-10.5h2.2v10.5": {4, 2}, "M2.75 22v-21.0h2.2v21.0": {0, 1},
	} {
		if got := stepsLine(steps); got != want {
			t.Errorf("%v is %q, want %q", steps, got, want)
		}
	}
	if got := fmt.Sprint(wordsOf("a # b#")); got != "[{a  false} {# true} { b false} {# true}]" {
		t.Errorf("%s", got)
	}
}
