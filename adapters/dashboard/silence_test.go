package dashboard

import (
	"errors"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/internal/wrong"
)

// Each page shows that the store is silent, how old its figures are, and has its actions off. Once
// the store answers, all is as before.
func TestASilentStoreShowsOnEveryPage(t *testing.T) {
	pages := []string{"/", "/queue?q=orders", "/shards?q=orders", "/nodes", "/store", "/jobs?q=orders", "/busy?q=orders"}
	h := furnished(t, Options{})
	h.board.looker.clock = h.clock
	for _, page := range pages {
		h.get(page)
	}
	answered := h.board.looker.last.view.Now
	h.store.statsFail = errors.New("dial tcp 10.0.0.1: refused")
	h.advance(maxRest + time.Second)

	for _, page := range pages {
		w := answerOf(h.board, request(http.MethodGet, page, nil))
		got := w.Body.String()
		says(t, got, "The store is silent No answer for", "dial tcp 10.0.0.1: refused", "Actions are off", "Try now")
		if !strings.Contains(got, " data-silent") || strings.Contains(got, `<form method="post"`) {
			t.Errorf("%s is not marked as silent, or has an action: %s", page, words(got))
		}
		if asOf := w.Header().Get(asOfHeader); asOf != (when{At: answered}).ISO() || !strings.Contains(got, `data-as-of="`+asOf) {
			t.Errorf("%s has the age %q, want %v", page, asOf, answered)
		}
	}

	h.store.statsFail = nil
	looks := h.store.looks
	saysNot(t, h.get("/queue?q=orders&try=1"), "The store is silent", "try=1")
	if h.store.looks != looks+1 {
		t.Errorf("%d looks for a retry, want 1", h.store.looks-looks)
	}
	for _, page := range pages {
		got := h.get(page)
		saysNot(t, got, "The store is silent")
		if strings.Contains(got, " inert") || strings.Contains(got, "data-silent") {
			t.Errorf("%s is still off: %s", page, words(got))
		}
	}
}

// A page that has not changed has the age of its figures too.
func TestAnUnchangedPageHasItsAge(t *testing.T) {
	h := furnished(t, Options{})
	h.board.looker.clock = h.clock
	h.get("/nodes")
	first := answerOf(h.board, request(http.MethodGet, "/nodes", nil))
	h.advance(minRest)

	r := request(http.MethodGet, "/nodes", nil)
	r.Header.Set("If-None-Match", first.Header().Get("ETag"))
	second := answerOf(h.board, r)
	if second.Code != http.StatusNotModified || second.Header().Get(asOfHeader) <= first.Header().Get(asOfHeader) {
		t.Errorf("status %d, of %q after %q", second.Code, second.Header().Get(asOfHeader), first.Header().Get(asOfHeader))
	}
}

// The page of a store that has never answered offers to ask again.
func TestAStoreIsSilentAlsoIfItsErrorIsHidden(t *testing.T) {
	h := furnished(t, Options{API: httpapi.Options{RedactError: func(string, string, string) string { return "" }}})
	h.board.looker.clock = h.clock
	h.get("/")
	h.store.statsFail = errors.New("dial tcp 10.0.0.1: refused")
	h.advance(maxRest + time.Second)
	got := h.get("/")
	says(t, got, "The store is silent No answer for")
	saysNot(t, got, "refused")
	if got := h.board.looker.last.view.Silence; got != hiddenText {
		t.Errorf("the silence is %q, which counts as an answer; want %q", got, hiddenText)
	}
}

func TestAStoreThatNeverAnsweredCanBeRetried(t *testing.T) {
	h := furnished(t, Options{})
	h.store.statsFail = errors.New("refused")
	h.board.looker.last = nil
	got := answerOf(h.board, request(http.MethodGet, "/queue?q=orders", nil))
	if got.Code != http.StatusServiceUnavailable || !strings.Contains(got.Body.String(), `href="queue?q=orders&amp;try=1"`) {
		t.Errorf("status %d: %s", got.Code, words(got.Body.String()))
	}
	says(t, got.Body.String(), "It has not answered for")
	h.store.statsFail = nil
	says(t, h.get("/queue?q=orders&try=1"), "orders", "waiting")
}

// The age of the figures is by the store's clock: since its last answer or, if there was none, since
// it was first asked.
func TestTheAgeOfTheFigures(t *testing.T) {
	at := func(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
	store := func(seconds int) time.Time { return at(seconds).Add(time.Hour) } // its clock is an hour ahead
	l := &looker{clock: func() time.Time { return at(10) }, next: at(15)}
	if asOf, s := l.age(); !asOf.Equal(at(10)) || s != nil {
		t.Errorf("before the first look: %v, %+v", asOf, s)
	}
	l.retry() // there is nothing to retry yet

	l.last = &snapshot{at: at(8), answered: at(8), view: wrong.View{Now: store(8)}}
	if asOf, s := l.age(); !asOf.Equal(store(8)) || s != nil {
		t.Errorf("after an answer: %v, %+v", asOf, s)
	}
	if l.retry(); l.stale {
		t.Error("a store that answers is asked again at once")
	}

	l.last.failed, l.last.answered, l.last.silent = errors.New("refused"), at(3), at(5)
	l.last.view.Silence = "hidden"
	want := silence{
		Since: when{store(3), store(10)},
		Error: "hidden",
		Next:  when{store(15), store(10)},
	}
	if asOf, s := l.age(); !asOf.Equal(store(3)) || *s != want {
		t.Errorf("silent: %v, %+v, want %+v", asOf, s, want)
	}

	l.last.answered = time.Time{}
	want.Since, want.Never = when{store(5), store(10)}, true
	if asOf, s := l.age(); !asOf.Equal(store(5)) || *s != want {
		t.Errorf("never answered: %v, %+v, want %+v", asOf, s, want)
	}
	if l.retry(); !l.stale {
		t.Error("a silent store is not asked again")
	}
}

// A page that reads the store itself can't be made while the store is silent. It says so with the
// banner and a link that tries again, also if the last look at the store had an answer.
func TestAPageThatNeedsASilentStoreSaysSo(t *testing.T) {
	fails := errors.New("dial tcp 10.0.0.1: refused")
	for _, page := range []string{"/errors", "/audit", "/jobs?q=orders", "/id?q=orders&id=dead", "/morgue?q=orders", "/search?for=no"} {
		h := furnished(t, Options{})
		h.board.looker.clock = h.clock
		h.get(page)
		h.store.silent = fails
		h.advance(minRest - 1)
		if w := answerOf(h.board, request(http.MethodGet, page, nil)); w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d", page, w.Code)
		}
		if looks := h.store.looks; h.board.looker.last.failed != nil {
			t.Errorf("%s: %d looks, less than %v apart", page, looks, minRest)
		}

		h.advance(1)
		w := answerOf(h.board, request(http.MethodGet, page, nil))
		got := w.Body.String()
		says(t, got, "The store is silent No answer for 2 s : dial tcp 10.0.0.1: refused", "Try now")
		if w.Code != http.StatusServiceUnavailable || !strings.Contains(got, " data-silent") {
			t.Errorf("%s: status %d, not marked as silent", page, w.Code)
		}

		h.store.silent = nil
		again := regexp.MustCompile(`href="([^"]+)">Try now`).FindStringSubmatch(got)
		if again == nil {
			t.Fatalf("%s offers no retry", page)
		}
		saysNot(t, h.get("/"+strings.ReplaceAll(again[1], "&amp;", "&")), "The store is silent")
	}
}

// Running does not say that nothing runs while the store has not said so.
func TestRunningJobsThatAreNotKnown(t *testing.T) {
	h := furnished(t, Options{})
	h.get("/busy")
	h.store.silent = errors.New("refused")
	h.board.looker.acted()
	page := answerOf(h.board, request(http.MethodGet, "/busy", nil)).Body.String()
	says(t, page, "The store is silent", "orders: the store fails: refused", "Its running jobs are not known")
	saysNot(t, page, "No running jobs")
}

// The next try of a silent store is never in the past.
func TestTheNextTryIsToCome(t *testing.T) {
	h := furnished(t, Options{})
	h.board.looker.clock = h.clock
	h.get("/nodes")
	h.store.statsFail = errors.New("refused")
	h.advance(maxRest)
	says(t, h.get("/nodes"), "The next try is in 2 s .")

	l := h.board.looker
	l.looking <- struct{}{} // a look is under way
	for after, want := range map[time.Duration]string{time.Second: "in 1 s", 2 * time.Second: "now", time.Minute: "now"} {
		l.next = h.clock().Add(minRest)
		l.clock = func() time.Time { return h.clock().Add(after) }
		w := answerOf(h.board, request(http.MethodGet, "/nodes", nil))
		says(t, w.Body.String(), "The next try is "+want+" .")
	}
}

var anyLink = regexp.MustCompile(`(?:href|action)="([^"#]+)"`)

// A user with rights for some queues has a home with them, and each link of his pages works. No page
// has the name of another queue.
func TestRightsForSomeQueuesHaveAHome(t *testing.T) {
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" && a.Queue != "mails" {
			return errors.New("not yours")
		}
		return nil
	}}})
	h.declare("mails", 2)
	h.declare("secrets", 1)
	h.push("secrets", "runs", 0, "p")
	h.schedule("secrets", "a", "hidden-plan", nil)
	h.board.looker.acted()

	home := h.get("/")
	says(t, home, "You see 2 queues.", "orders", "mails")
	seen := map[string]bool{}
	for _, page := range []string{"./", "queue?q=orders", "busy", "errors", "schedules", "search?for=r", "search?for=runs", "id?q=orders&id=runs"} {
		w := answerOf(h.board, request(http.MethodGet, "/"+strings.TrimPrefix(page, "./"), nil))
		saysNot(t, w.Body.String(), "secrets", "hidden-plan")
		for _, link := range anyLink.FindAllStringSubmatch(w.Body.String(), -1) {
			to := strings.ReplaceAll(link[1], "&amp;", "&")
			if seen[to] || to == "act" || to == "search" || strings.HasPrefix(to, "api/") {
				continue
			}
			seen[to] = true
			if got := answerOf(h.board, request(http.MethodGet, "/"+strings.TrimPrefix(to, "./"), nil)); got.Code >= 400 {
				t.Errorf("%s links to %s: status %d", page, to, got.Code)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d links were followed", len(seen))
	}

	if to := answerOf(h.board, request(http.MethodGet, "/search?for=secrets", nil)); to.Code != http.StatusOK ||
		!strings.Contains(to.Body.String(), "not found") {
		t.Errorf("a queue of others is found: status %d", to.Code)
	}
}

// One search finds queues by a part of their names, and ids. It goes to the only hit.
func TestOneSearchForQueuesAndIDs(t *testing.T) {
	h := newHouse(t, Options{})
	for _, queue := range []string{"mails", "mails.eu", "Mailing"} {
		h.declare(queue, 1)
	}
	h.push("orders", "mails", time.Hour, "p")
	h.push("orders", "ail", time.Hour, "p")
	h.get("/")

	for text, want := range map[string]string{
		"mails.eu": "queue?q=mails.eu",
		"ord":      "queue?q=orders",
		"MAILI":    "queue?q=Mailing",
		"ail":      "id?id=ail&q=orders", // an id counts more than a part of a name
		"mail":     "",
		"mails":    "", // a queue and an id
	} {
		w := answerOf(h.board, request(http.MethodGet, "/search?for="+text, nil))
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q: %s", text, got, want, words(w.Body.String()))
		}
	}
	says(t, h.get("/search?for=mails"), "Hits for mails Queues mails mails.eu", "The id mails is in 1 queue Queue Shard Where orders")
	if w := answerOf(h.board, request(http.MethodGet, "/search?for="+strings.Repeat("x", 600), nil)); w.Code != http.StatusBadRequest {
		t.Errorf("status %d of a text that is too long", w.Code)
	}
}

// The error of a look at the whole store may name any queue, so users who may not see all don't get
// it.
func TestTheErrorOfASilentStoreNamesNoOthersQueue(t *testing.T) {
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	pages := []string{"/", "/queue?q=orders", "/shards?q=orders", "/id?q=orders&id=dead", "/audit?q=orders", "/search?for=no",
		"/server?node=owner", "/busy", "/schedules", "/sheet?q=orders&op=purge"}
	for _, page := range pages {
		h.get(page)
	}
	h.store.statsFail = errors.New("the record of queue secret is damaged")
	for range 2 {
		for _, page := range pages {
			h.board.looker.acted()
			got := answerOf(h.board, request(http.MethodGet, page, nil)).Body.String()
			says(t, got, "The store is silent No answer for")
			saysNot(t, got, "secret")
		}
		says(t, h.get("/"), "The store does not answer")
	}

	h.board.looker.last = nil // it has never answered
	for _, page := range pages {
		saysNot(t, answerOf(h.board, request(http.MethodGet, page, nil)).Body.String(), "secret")
	}
}

// A request without the right to see anything does not make pages ask a silent store more often.
func TestARefusedRequestMakesNoRetry(t *testing.T) {
	refused := false
	h := furnished(t, Options{API: httpapi.Options{Authorize: func(*http.Request, httpapi.Action) error {
		if refused {
			return errors.New("no")
		}
		return nil
	}}})
	h.get("/")
	h.store.statsFail = errors.New("refused")
	h.get("/")
	looks := h.store.looks
	refused = true
	for _, page := range []string{"/?try=1", "/queue?q=orders&try=1", "/nodes?try=1"} {
		if w := answerOf(h.board, request(http.MethodGet, page, nil)); w.Code != http.StatusForbidden {
			t.Errorf("%s: status %d", page, w.Code)
		}
	}
	if h.store.looks != looks {
		t.Errorf("%d looks for refused requests, want none", h.store.looks-looks)
	}
}

// While a store has never answered, a user of some queues is told that, and not that he may not see
// them. Nobody without a name makes pages ask it.
func TestAStoreThatHasNeverAnsweredRefusesNobody(t *testing.T) {
	known := true
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if !known {
			return httpapi.ErrUnauthenticated
		}
		if a.Queue != "orders" {
			return errors.New("not yours")
		}
		return nil
	}}})
	h.store.statsFail = errors.New("refused")
	pages := []string{"/", "/search?for=a", "/errors", "/busy", "/schedules", "/server?node=n"}
	known = false
	for _, page := range pages {
		if w := answerOf(h.board, request(http.MethodGet, page, nil)); w.Code != http.StatusUnauthorized {
			t.Errorf("%s without a name: status %d", page, w.Code)
		}
	}
	if h.store.looks != 0 {
		t.Errorf("%d looks for nobody", h.store.looks)
	}

	known = true
	for _, page := range pages {
		w := answerOf(h.board, request(http.MethodGet, page, nil))
		says(t, w.Body.String(), "The store does not answer")
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: status %d", page, w.Code)
		}
	}
	h.store.statsFail = nil
	h.get("/")
}
