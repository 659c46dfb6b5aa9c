package dashboard

import (
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// furnished is a house in which there is something to do on every page.
func furnished(t testing.TB, o Options) *house {
	h := newHouse(t, o)
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Lanes: 8})
	h.ended(core.Buried, "boom", "dead")
	h.ended(core.Failed, "boom", "failed")
	h.push("orders", "runs", 0, "p")
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	h.push("orders", "waits", time.Hour, "p")
	if _, err := h.store.Track(t.Context(), ports.TrackRequest{Queue: "orders", ID: "waits"}); err != nil {
		t.Fatal(err)
	}
	h.schedule("orders", "a", "nightly", nil)
	h.schedule("orders", "b", "weekly", func(s *core.Schedule) { s.Paused = true })
	h.store.unreadable = []ports.QuarantinedRecord{{Key: "k", ID: "x", Reason: "torn", Stored: []byte("s")}}
	return h
}

// pagesThatAct are the pages with forms and links of actions.
var pagesThatAct = []string{
	"/queue?q=orders", "/jobs?q=orders&list=retries", "/jobs?q=orders", "/morgue?q=orders", "/id?q=orders&id=dead",
	"/id?q=orders&id=waits", "/id?q=orders&id=runs", "/busy", "/nodes",
	"/unreadable?q=orders", "/tracked?q=orders", "/schedules", "/named?q=orders&name=nightly",
	"/schedule?q=orders&name=nightly&id=a", "/errors", "/errors?q=orders",
}

var offer = regexp.MustCompile(`name="op" value="([a-z-]+)"|name="then" value="([a-z-]+)"|sheet\?[^"]*op=([a-z-]+)`)

// offers are the actions that pages have a button or a link for.
func (h *house) offers() (list []string) {
	for _, target := range pagesThatAct {
		for _, found := range offer.FindAllStringSubmatch(h.get(target), -1) {
			list = append(list, strings.Join(found[1:], ""))
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// An action is offered only to users who may take it.
func TestPagesOfferWhatIsAllowed(t *testing.T) {
	all := []string{
		"bury", "cancel", "delete", "discard", "drain", "drop", "edit", "pause", "pause-schedule", "purge", "recount",
		"remove-schedule",
		"resume-schedule", "revive", "run-now", "run-schedule", "track", "untrack",
	}
	if got := furnished(t, Options{}).offers(); !slices.Equal(got, all) {
		t.Errorf("all are allowed, and offered are %q, want %q", got, all)
	}
	for _, op := range all {
		refused := verbOf(op)
		h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
			if a.Verb == refused {
				return errors.New("not that")
			}
			return nil
		}}})
		want := slices.DeleteFunc(slices.Clone(all), func(o string) bool { return verbOf(o) == refused })
		if got := h.offers(); !slices.Equal(got, want) {
			t.Errorf("without %s offered are %q, want %q", refused, got, want)
		}
	}
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Bulk {
			return errors.New("one by one")
		}
		return nil
	}}})
	for _, target := range pagesThatAct {
		saysNot(t, h.get(target), "sheet?")
	}
	if got := h.offers(); !slices.Equal(got, all) {
		t.Errorf("without actions on all offered are %q, want %q", got, all)
	}
}

// Rights for a queue are offered on that queue's pages and rows alone, and rights for servers on
// theirs, whatever queue the address names.
func TestPagesOfferWhatIsAllowedOnTheirQueue(t *testing.T) {
	only := "orders"
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb != httpapi.VerbView && a.Verb != httpapi.VerbViewPayload && a.Queue != only {
			return errors.New("not there")
		}
		return nil
	}}})
	h.declare("mails", 1)
	h.push("mails", "letter", 0, "p")
	h.turn("mails", 0, 9)
	offered := func(target string) (list []string) {
		for _, found := range offer.FindAllStringSubmatch(h.get(target), -1) {
			list = append(list, strings.Join(found[1:], ""))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	row := func(page, id string) string {
		_, from, found := strings.Cut(page, ">"+id+"<")
		if !found {
			t.Fatalf("no row of %s in %s", id, words(page))
		}
		row, _, _ := strings.Cut(from, "</tr>")
		return row
	}

	for target, want := range map[string][]string{
		"/queue?q=orders": {"pause", "pause-schedule", "recount", "resume-schedule", "run-schedule"},
		"/queue?q=mails":  nil,
		"/morgue?q=mails": nil,
		"/jobs?q=mails":   nil,
		"/errors?q=mails": nil,
		"/nodes":          nil,
		"/nodes?q=orders": nil,
	} {
		if got := offered(target); !slices.Equal(got, want) {
			t.Errorf("%s offers %q, want %q", target, got, want)
		}
	}
	busy := h.get("/busy")
	if !strings.Contains(row(busy, "runs"), `value="cancel"`) ||
		strings.Contains(row(busy, "letter"), `value="cancel"`) {
		t.Errorf("of the jobs of all queues, those of orders alone can be cancelled: %s", busy)
	}

	only = "" // actions on servers
	for target, want := range map[string][]string{
		"/nodes":          {"drain"},
		"/nodes?q=orders": {"drain"},
		"/queue?q=orders": nil,
		"/busy":           nil,
	} {
		if got := offered(target); !slices.Equal(got, want) {
			t.Errorf("with rights for servers alone %s offers %q, want %q", target, got, want)
		}
	}
}

// A page checks the same rights as the API does when a form is sent.
func TestRightsAreThoseOfTheAPI(t *testing.T) {
	for op, o := range ops {
		var asked []httpapi.Action
		h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
			asked = append(asked, a)
			return nil
		}}})
		asked = nil
		form := []string{
			"name", "nightly", "all", "1", "op", op, "confirm", "1", "id", "dead", "node", "owner",
			"shard", "0", "key", "k", "old", "cA==", "new", "x",
			"from", "2030-01-01T00:00:00Z", "to", "2030-01-02T00:00:00Z", "version", "0", "max-running", "5",
		}
		if o.ofQueue {
			form = append(form, "q", "orders")
		}
		if !o.named {
			form[7] = "0"
			form[8] = "unused"
		}
		if op == "edit" {
			form[8] = "id"
		}
		h.form(form...)
		if !slices.ContainsFunc(asked, func(a httpapi.Action) bool {
			return a.Verb == verbOf(op) && (a.Queue == "orders") == o.ofQueue
		}) {
			t.Errorf("%s: the API asks for %+v, a page for %s", op, asked, verbOf(op))
		}
	}
}

// Authorize gets the request for the page, whatever the page reads.
func TestRightsSeeThePagesRequest(t *testing.T) {
	asked := map[string]bool{}
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(r *http.Request, a httpapi.Action) error {
		asked[r.Method+" "+r.URL.Path+" "+string(a.Verb)] = true
		return nil
	}}})
	clear(asked)
	h.get("/id?q=orders&id=dead")
	for _, want := range []string{"GET /id view", "GET /id view-payload", "GET /id revive"} {
		if !asked[want] {
			t.Errorf("no %q among %v", want, asked)
		}
	}
}

// Each right is checked once, even if a page uses it many times.
func TestRightsAreAskedOnceAPage(t *testing.T) {
	asked := map[httpapi.Verb]int{}
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		asked[a.Verb]++
		return nil
	}}})
	for _, id := range numbered("a", 40) {
		h.push("orders", id, 0, "p")
	}
	for index := range houseShards {
		h.turn("orders", index, core.MaxTurnJobs)
	}
	clear(asked)
	says(t, h.get("/busy"), "40 buffered")
	if asked[httpapi.VerbCancel] != 1 {
		t.Errorf("one page asks %v", asked)
	}
	clear(asked)
	if w := answerOf(h.board, request(
		http.MethodGet, "/sheet?"+url.Values{"q": {"orders"}, "op": {"purge"}}.Encode(), nil,
	)); w.Code != http.StatusOK {
		t.Error(w.Code)
	}
}

// A browser without a password is asked for one, and shows the page once it sends it.
func TestAPageAsksForAPassword(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(r *http.Request, _ httpapi.Action) error {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			return httpapi.ErrUnauthenticated
		}
		return nil
	}}})
	for _, target := range []string{"/", "/queue?q=orders", "/audit"} {
		r := request(http.MethodGet, target, nil)
		w := answerOf(h.board, r)
		if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != httpapi.Challenge ||
			!strings.Contains(w.Body.String(), "Log in") {
			t.Errorf("%s without a password: status %d, %v", target, w.Code, w.Header())
		}
		r = request(http.MethodGet, target, nil)
		r.SetBasicAuth("ann", "secret")
		if w := answerOf(h.board, r); w.Code != http.StatusOK || w.Header().Get("WWW-Authenticate") != "" {
			t.Errorf("%s with it: status %d", target, w.Code)
		}
	}
}

// A user whose rights are for one queue sees no page about all servers, whatever queue the address
// names. Pages about queues show his.
func TestRightsForAQueueShowNoPageOfAll(t *testing.T) {
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	for target, want := range map[string]int{
		"/": 200, "/?q=orders": 200, "/busy": 200, "/schedules": 200, "/search?for=runs": 303, "/nodes?q=orders": 403, "/store?q=orders": 403,
		"/queue?q=orders": 200, "/busy?q=orders": 200, "/audit?q=orders": 200, "/queue?q=mail": 403,
	} {
		if got := answerOf(h.board, request(http.MethodGet, target, nil)).Code; got != want {
			t.Errorf("%s: %d, want %d", target, got, want)
		}
	}

	for _, target := range []string{"/queue?q=mail", "/nodes?q=orders"} {
		page := answerOf(h.board, request(http.MethodGet, target, nil)).Body.String()
		saysNot(t, page, `class="sub"`, `href="queue?`, `href="jobs?`)
	}
}

// Another site's page starts no preview: a preview is work for the store. A typed address does.
func TestAPreviewIsNotForAnotherSite(t *testing.T) {
	h := furnished(t, Options{})
	for site, want := range map[string]int{"cross-site": 403, "same-origin": 200, "none": 200} {
		r := request(http.MethodGet, "/sheet?q=orders&op=purge", nil)
		r.Header.Set("Sec-Fetch-Site", site)
		if w := answerOf(h.board, r); w.Code != want {
			t.Errorf("%s: %d, want %d: %s", site, w.Code, want, words(w.Body.String()))
		}
	}
}

// An action that is refused makes no page look at the store again.
func TestARefusedActionCausesNoLook(t *testing.T) {
	refusal := errors.New("only look")
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb != httpapi.VerbView {
			return refusal
		}
		return nil
	}}})
	h.get("/queue?q=orders")
	looks := h.store.looks
	for status, of := range map[int]error{
		http.StatusForbidden:    refusal,
		http.StatusUnauthorized: httpapi.ErrUnauthenticated,
		http.StatusBadRequest:   nil,
	} {
		refusal = of
		for range 3 {
			if w := h.form("q", "orders", "op", "cancel", "id", "\x01"); w.Code != status {
				t.Fatalf("status %d, want %d: %s", w.Code, status, words(w.Body.String()))
			}
			answerOf(h.board, request(http.MethodGet, "/queue?q=orders", nil))
		}
		if h.store.looks != looks {
			t.Errorf("after status %d: %d looks at the store, want %d", status, h.store.looks, looks)
		}
	}
}
