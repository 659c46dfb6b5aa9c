package dashboard

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// stats returns the figures of orders.
func (h *house) stats() inspect.QueueStats {
	h.t.Helper()
	stats, err := inspect.New(h.store, inspect.Options{}).Stats(h.t.Context(), "orders")
	if err != nil {
		h.t.Fatal(err)
	}
	return stats[0]
}

func TestPauseAndResume(t *testing.T) {
	h := newHouse(t, Options{})
	page := h.do("op", "pause", "q", "orders")
	says(t, page, "The queue is paused. Its waiting jobs are not claimed.", "‖ paused", "Resume the queue")
	if !h.stats().Queue.Paused {
		t.Error("it is not paused")
	}
	says(t, h.do("op", "resume", "q", "orders"), "The queue is active.", "Pause the queue")
	says(t, h.do("op", "recount", "q", "orders"), "The queue was recounted.")
}

func TestForgetAsksFirst(t *testing.T) {
	h := newHouse(t, Options{})
	w := h.form("op", "forget", "q", "orders")
	says(t, w.Body.String(), "Forget the queue?", "can't be undone")
	if page := h.do("op", "forget", "q", "orders", "confirm", "0"); !strings.Contains(page, "The queue is forgotten.") {
		t.Error(words(page))
	}
}

func TestActionsOnChosenJobs(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", MaxRetries: 25}},
	}})
	h.ended(core.Failed, "no answer\nat line 3", numbered("a", 6)...)
	page := h.get("/jobs?q=orders&list=retries")
	says(t, page, "a00000 in 1 h 1 of 25 1 no answer …", "6 of 6")
	page = h.do("op", "run-now", "q", "orders", "id", "a00001", "id", "a00002", "back", "jobs", "back.list", "retries")
	says(t, page, "2 made due", "Jobs with a failure", "a00001 0 s ago")
	says(t, h.do("op", "bury", "q", "orders", "id", "a00003"), "1 moved to the morgue")

	w := h.form("op", "delete", "q", "orders", "id", "a00004", "id", "a00005", "back", "jobs")
	says(t, w.Body.String(), "Delete 2 ids?", "a00004", "a00005")
	if n := h.stats().Length(); w.Code != http.StatusOK || n != 5 {
		t.Errorf("status %d, %d jobs are left before it was confirmed", w.Code, n)
	}
	says(t, h.do("op", "delete", "q", "orders", "id", "a00004", "id", "a00005", "back", "jobs", "confirm", "2"),
		"2 deleted")
	if s := h.stats(); s.Length() != 3 || s.Dead != 1 {
		t.Errorf("%d jobs and %d dead letters", s.Length(), s.Dead)
	}
}

// A form that names no action, no target, or an action that it can't have, changes nothing.
func TestFormsThatNameNoActionOrTarget(t *testing.T) {
	h := furnished(t, Options{})
	const before = "2030-01-02T15:04:05Z"
	for _, tt := range []struct {
		form   []string
		status int
		want   string
	}{
		{[]string{"op", "nix", "q", "orders"}, http.StatusBadRequest, "The form can't be read"},
		{[]string{"op", "pause"}, http.StatusBadRequest, "The form can't be read"},
		{[]string{"op", "pause", "q", ".."}, http.StatusNotFound, "There is no such queue"},
		{[]string{"op", "delete", "q", "orders"}, http.StatusBadRequest, "No rows are marked"},
		{[]string{"op", "drop", "q", "orders", "confirm", "0"}, http.StatusBadRequest, "No rows are marked"},
		{[]string{"op", "cancel", "q", "orders", "bulk", "1", "before", before}, http.StatusBadRequest, "No rows are marked"},
		{[]string{"op", "discard", "q", "orders", "shard", "0", "confirm", "0"}, http.StatusBadRequest, "The form can't be read"},
		{[]string{"op", "discard", "q", "orders", "key", "k", "confirm", "0"}, http.StatusBadRequest, "The form can't be read"},
		{[]string{"op", "edit", "q", "orders", "id", "dead", "old", "cQ!", "new", "x"}, http.StatusBadRequest, "The form can't be read"},
	} {
		w := h.form(tt.form...)
		if w.Code != tt.status || !strings.Contains(words(w.Body.String()), tt.want) {
			t.Errorf("%q: status %d, want %d with %q: %s", tt.form, w.Code, tt.status, tt.want, words(w.Body.String()))
		}
	}
	if s := h.stats(); s.Queue.Paused || s.Dead != 1 || s.Length() != 2 || s.Quarantined != 1 {
		t.Errorf("%+v", s)
	}
}

// Only an edit takes a second action: another form that asks for a revive gets none.
func TestOnlyAnEditIsFollowedByARevive(t *testing.T) {
	h := furnished(t, Options{})
	h.do("op", "track", "q", "orders", "id", "dead", "then", "revive")
	if n := h.stats().Dead; n != 1 {
		t.Errorf("%d dead letters are left, want 1", n)
	}
}

// A confirmation is for the number of ids that the question named: one for fewer or more asks
// again.
func TestAConfirmationIsForTheNumberOfIDs(t *testing.T) {
	h := newHouse(t, Options{})
	h.ended(core.Buried, "boom", numbered("a", 20)...)
	form := []string{"op", "purge", "q", "orders"}
	for _, id := range numbered("a", 20) {
		form = append(form, "id", id)
	}
	for _, confirmed := range []string{"", "0", "1", "19", "21", "x", "020"} {
		w := h.form(append(form, "confirm", confirmed)...)
		page := w.Body.String()
		says(t, page, "Purge 20 ids?")
		if asked := strings.Count(page, `name="confirm"`); w.Code != http.StatusOK || asked != 1 ||
			field(t, page, "confirm") != "20" {
			t.Errorf("confirmed %q: status %d, %d fields to confirm, want 1 for 20 ids", confirmed, w.Code, asked)
		}
		if n := h.stats().Dead; n != 20 {
			t.Fatalf("confirmed %q: %d dead letters are left, want 20", confirmed, n)
		}
	}
	says(t, h.do(append(form, "confirm", "20")...), "20 removed permanently")
}

// deadlines is a response whose deadlines of reading are recorded.
type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error {
	d.set = append(d.set, at)
	return nil
}

// A browser that sends a form slowly is cut off, and only until the form has come.
func TestAFormHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		h.board.ServeHTTP(w, request(http.MethodPost, "/act", url.Values{"op": {"pause"}, "q": {"orders"}}))
		if len(w.set) != 2 || !w.set[0].Equal(time.Now().Add(bodyTime)) || !w.set[1].IsZero() {
			t.Errorf("deadlines %v, want %v from now and then none", w.set, bodyTime)
		}
	})
}

func TestCancelWhatRuns(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Lanes: 8})
	for _, id := range []string{"a", "b"} {
		h.push("orders", id, 0, "p")
	}
	for index := range houseShards {
		h.turn("orders", index, 9)
	}
	h.advance(2 * time.Minute)
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Lanes: 8})
	says(t, h.get("/busy"), "blue alive: 0 of 8 lanes busy", "2 buffered, or just started", "2 min ● long")
	says(t, h.do("op", "cancel", "q", "orders", "id", "a", "back", "busy"), "1 cancelled, to be put back",
		"to be put back")
	says(t, h.form("op", "drop", "q", "orders", "id", "b", "back", "busy").Body.String(), "Cancel and drop 1 id?")
	says(t, h.do("op", "drop", "q", "orders", "id", "b", "back", "busy", "confirm", "1"), "to be dropped")
	h.advance(2 * time.Hour)
	says(t, h.get("/busy?q=orders"), "Orphaned jobs")
}

// field returns the value of a hidden field of a page's form.
func field(t testing.TB, page, name string) string {
	t.Helper()
	found := regexp.MustCompile(`name="` + name + `" value="([^"]*)"`).FindStringSubmatch(page)
	if found == nil {
		t.Fatalf("no field %s in %s", name, words(page))
	}
	return words(found[1])
}

func TestPurgeOfAllShowsTheCountAndAsksAgainIfItGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.ended(core.Buried, "boom 1", numbered("a", 5)...)
		h.ended(core.Buried, "timeout", numbered("b", 3)...)
		h.advance(time.Second)
		page := h.get("/sheet?q=orders&op=purge&error=boom")
		says(t, page, "Purge dead letters of orders whose error contains “boom”", "5 match of 8.",
			"This can't be undone.", "Purge 5")
		before := field(t, page, "before")
		form := []string{"op", "purge", "q", "orders", "bulk", "1", "error", "boom", "before", before}
		w := h.form(append(form, "confirm", "4")...)
		says(t, w.Body.String(), "More entries match than were shown. Nothing was changed.")
		if n := h.stats().Dead; n != 8 {
			t.Errorf("%d are left", n)
		}
		h.advance(time.Second)
		h.ended(core.Buried, "boom 2", "c") // it came after the look
		says(t, h.do(append(form, "confirm", "5")...), "5 removed permanently", "boom 2")
		if n := h.stats().Dead; n != 4 {
			t.Errorf("%d are left", n)
		}
		if w := h.form(
			"op", "purge", "q", "orders", "bulk", "1", "before", "yesterday",
		); w.Code != http.StatusBadRequest {
			t.Errorf("status %d", w.Code)
		}
	})
}

func TestReviveOfAllGoesOnInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.ended(core.Buried, "boom", numbered("a", 2500)...)
		h.advance(time.Second)
		page := h.get("/sheet?q=orders&op=revive")
		says(t, page, "Revive all dead letters of orders")
		page = h.do("op", "revive", "q", "orders", "bulk", "1", "before", field(t, page, "before"))
		for steps := 1; strings.Contains(page, "Continue"); steps++ {
			says(t, page, "of 2,500 checked")
			if steps > 10 {
				t.Fatal("it does not end")
			}
			page = h.do("op", "revive", "q", "orders", "bulk", "1", "before", field(t, page, "before"),
				"continue", field(t, page, "continue"), "looked", field(t, page, "looked"))
		}
		says(t, page, "2500 queued again")
		if s := h.stats(); s.Dead != 0 || s.Length() != 2500 {
			t.Errorf("%d dead, %d queued", s.Dead, s.Length())
		}
	})
}

func TestAStepThatFailsIsGoneOnFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.ended(core.Buried, "boom", numbered("a", 900)...)
		h.advance(time.Second)
		page := h.get("/sheet?q=orders&op=revive")
		h.store.revives, h.store.fails = 1, errors.New("connection reset")
		page = h.do("op", "revive", "q", "orders", "bulk", "1", "before", field(t, page, "before"))
		says(t, page, "The store failed during the last step.", "of 900 checked")
		if n := h.stats().Dead; n == 0 || n == 900 {
			t.Fatalf("%d are left", n)
		}
		h.store.fails = nil
		says(t, h.do("op", "revive", "q", "orders", "bulk", "1", "before", field(t, page, "before"),
			"continue", field(t, page, "continue")), "900 queued again")
	})
}

// A page continues by itself only if one of the dashboard's own pages has led to it.
func TestStepsGoOnByThemselvesOnlyFromHere(t *testing.T) {
	h := newHouse(t, Options{})
	const target = "/steps?q=orders&op=revive&before=2030-01-02T15:04:05Z&continue=x&looked=3&total=9"
	for name, tt := range map[string]struct {
		target string
		change func(http.Header)
		auto   bool
	}{
		"our own page":                 {target, func(h http.Header) { h.Set("Sec-Fetch-Site", "same-origin") }, true},
		"another site":                 {target, func(h http.Header) { h.Set("Sec-Fetch-Site", "cross-site") }, false},
		"another site of ours":         {target, func(h http.Header) { h.Set("Sec-Fetch-Site", "same-site") }, false},
		"typed":                        {target, func(h http.Header) { h.Set("Sec-Fetch-Site", "none") }, false},
		"an old browser":               {target, func(http.Header) {}, false},
		"an old browser, our own page": {target, func(h http.Header) { h.Set("Referer", "http://localhost:8080/jobs/sheet") }, true},
		"an old browser, another site": {target, func(h http.Header) { h.Set("Referer", "http://evil.example/") }, false},
		"a step that has got nowhere":  {target + "&was=3", func(h http.Header) { h.Set("Sec-Fetch-Site", "same-origin") }, false},
		"a step that has got a bit on": {target + "&was=2", func(h http.Header) { h.Set("Sec-Fetch-Site", "same-origin") }, true},
		"a step without a place to go on": {strings.ReplaceAll(target, "continue=x", "continue="), func(h http.Header) {
			h.Set("Sec-Fetch-Site", "same-origin")
		}, false},
	} {
		r := request(http.MethodGet, tt.target, nil)
		tt.change(r.Header)
		if got := strings.Contains(answerOf(h.board, r).Body.String(), "data-auto"); got != tt.auto {
			t.Errorf("%s: goes on by itself: %v", name, got)
		}
	}
}

func TestEditAPayload(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, `{"n":1}`, "\xff\xfe")
	h.end("orders", core.Buried, "boom")
	page := h.get("/id?q=orders&id=a")
	says(t, page, "The id is only in the morgue ● dead Revive its dead letter to run it again.", `"n": 1`, "binary: fffe",
		"00000000 ff fe")
	if n := strings.Count(page, `value="edit"`); n != 1 {
		t.Errorf("%d payloads can be edited", n)
	}
	fields := []string{"op", "edit", "q", "orders", "id", "a", "place", "dead", "back", "id", "back.id", "a"}
	sent := func(more ...string) []string { return append(slices.Clone(fields), more...) }

	change := h.form(sent("old", field(t, page, "old"), "new", "{\"n\":\r\n2}")...).Body.String()
	says(t, change, "The change", `- "n": 1`, `+ "n": 2`, "Why", "Store and revive Store Discard")
	if s := h.stats(); s.Dead != 1 {
		t.Errorf("%+v", s.Counts)
	}
	page = h.do(sent("old", field(t, page, "old"), "new", field(t, change, "new"), "confirm", "1", "reason", "a call")...)
	says(t, page, "The payload is replaced.", `"n": 2`, "edit payloads, “a call”")
	page = h.do(sent("old", field(t, page, "old"), "new", "3", "confirm", "1", "then", "revive")...)
	says(t, page, "queued again", "No server serves the queue ▨ nobody serves")
	if s := h.stats(); s.Dead != 0 || s.Length() != 1 {
		t.Errorf("%d dead, %d queued", s.Dead, s.Length())
	}
	saysNot(t, newHouse(t, Options{API: httpapi.Options{RedactPayload: func(string, string, []byte) []byte {
		return []byte("hidden")
	}}}).editable(t), `value="edit"`, "secret")
}

// editable returns the page of a dead letter with a secret.
func (h *house) editable(t *testing.T) string {
	h.push("orders", "a", 0, "secret")
	h.end("orders", core.Buried, "boom")
	page := h.get("/id?q=orders&id=a")
	says(t, page, "hidden")
	return page
}

func TestDrain(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Owner: "o1", Name: "blue", Queues: []string{"orders"}, Version: "v1"})
	h.announce(ports.Node{Owner: "o2", Name: "blue", Queues: []string{"orders"}, Version: "v2"})
	says(t, h.get("/nodes"), "The running servers have 2 versions.")
	page := h.do("op", "drain", "node", "o1")
	says(t, page, "The server drains. It gives up its shards.", "‖ draining", "Work again")
	says(t, h.do("op", "work", "node", "o1"), "The server takes shards again.")
	if w := h.form("op", "drain", "node", "nix"); w.Code != http.StatusNotFound {
		t.Errorf("status %d", w.Code)
	}
	h.advance(5 * time.Minute)
	says(t, h.get("/nodes"), "▨ gone")
}

// Results are shown in the dashboard's own words, whatever an address contains.
func TestAddressesSayNothingOfTheirOwn(t *testing.T) {
	h := newHouse(t, Options{})
	saysNot(t, h.get("/?did=<b>&n=3"), "flash", "<b>")
	saysNot(t, h.get("/?did=revive&n=x"), "<b>x")
	const counts = `role="status"><b>`
	saysNot(t, h.get("/?did=revive&n=-3"), counts)
	saysNot(t, h.get("/queue?q=orders&did=pause&n=3"), counts)
	if page := h.get("/morgue?q=orders&did=revive&n=3"); !strings.Contains(page, counts+"3") {
		t.Error("no count of an action on named entries")
	}
	for _, back := range []string{"//evil.example", "https://evil.example", "../x", "queue?x"} {
		w := h.form("op", "pause", "q", "orders", "back", back, "back.q", "x")
		if to := w.Header().Get("Location"); to != "queue?did=pause&q=orders" {
			t.Errorf("back to %q leads to %q", back, to)
		}
	}
}

func TestManyIDs(t *testing.T) {
	h := newHouse(t, Options{})
	form := []string{"op", "purge", "q", "orders"}
	for n := range 30 {
		form = append(form, "id", fmt.Sprint(n))
	}
	says(t, h.form(form...).Body.String(), "Purge 30 ids?", "and 10 more")
}

// On a live queue others deal with dead letters between the look and the click: fewer need no
// second confirmation.
func TestFewerThanWereConfirmedArePurged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.ended(core.Buried, "boom", numbered("a", 5)...)
		h.advance(time.Second)
		page := h.get("/sheet?q=orders&op=purge")
		before := field(t, page, "before")
		h.do("op", "revive", "q", "orders", "id", "a00001", "id", "a00002")
		says(t, h.do("op", "purge", "q", "orders", "bulk", "1", "before", before, "confirm", field(t, page, "confirm")),
			"3 removed permanently")
		if w := h.form("op", "purge", "q", "orders", "bulk", "1", "before", before); w.Code != http.StatusOK {
			t.Errorf("status %d of what was not confirmed", w.Code)
		}
	})
}

func TestRunNowOfAllCountsWhatIsNotDue(t *testing.T) {
	h := newHouse(t, Options{})
	for _, id := range numbered("a", 3) {
		h.push("orders", id, 0, "p")
	}
	h.advance(time.Second)
	page := h.get("/sheet?q=orders&op=run-now")
	says(t, page, "All 3 are already due. Back")
	saysNot(t, page, "<button>Run now", "<button disabled")
	h.push("orders", "later", time.Hour, "p")
	h.advance(time.Second)
	says(t, h.get("/sheet?q=orders&op=run-now"), "1 are not due yet of 4.", "Run now 1")
	says(t, h.get("/sheet?q=orders&op=run-now&error=x"), "0 are not due yet and match of 4.")
}

// A refused action, or one with no entry marked, leads back to its list.
func TestARefusedPageLeadsBackToItsList(t *testing.T) {
	refuses := Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb != httpapi.VerbView {
			return errors.New("no")
		}
		return nil
	}}}
	for name, tt := range map[string]struct {
		o    Options
		form []string
		want string
	}{
		"nothing marked": {
			Options{}, []string{"op", "delete", "q", "orders", "back", "jobs", "back.list", "retries"},
			"jobs?list=retries&amp;q=orders",
		},
		"not allowed":   {refuses, []string{"op", "revive", "q", "orders", "id", "a"}, "morgue?q=orders"},
		"all refused":   {refuses, []string{"op", "revive", "q", "orders", "bulk", "1", "before", "2030-01-02T15:04:05Z"}, "morgue?q=orders"},
		"not forgotten": {refuses, []string{"op", "forget", "q", "orders", "confirm", "0"}, "queue?q=orders"},
	} {
		w := newHouse(t, tt.o).form(tt.form...)
		if page := w.Body.String(); w.Code < 400 || !strings.Contains(page, `<a href="`+tt.want+`">Back</a>`) {
			t.Errorf("%s: status %d, no link to %s: %s", name, w.Code, tt.want, page)
		}
	}
	w := answerOf(newHouse(t, Options{}).board, request(http.MethodGet, "/jobs?q=orders&from=nonsense", nil))
	if w.Code < 400 || !strings.Contains(w.Body.String(), `href="jobs?q=orders">Back`) {
		t.Errorf("status %d: %s", w.Code, words(w.Body.String()))
	}
}

// sent sends a form from a page, as browsers do that name the page.
func (h *house) sent(from string, form ...string) (location, page string) {
	h.t.Helper()
	values := url.Values{}
	for at := 0; at+1 < len(form); at += 2 {
		values.Add(form[at], form[at+1])
	}
	r := request(http.MethodPost, "/act", values)
	if !strings.Contains(from, "//") {
		from = "http://localhost:8080/skein/" + from
	}
	r.Header.Set("Referer", from)
	w := answerOf(h.board, r)
	return w.Header().Get("Location"), w.Body.String()
}

func TestAnActionReturnsToWhereOneWas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.ended(core.Buried, "boom", numbered("a", 3)...)
		for _, tt := range []struct {
			from string
			form []string
			want string
		}{
			{"queue?q=orders&by=owner&span=24h", []string{"op", "pause", "q", "orders"}, "queue?by=owner&did=pause&q=orders&span=24h"},
			{"busy", []string{"op", "cancel", "q", "orders", "id", "a", "back", "busy"}, "busy?did=cancel&n=0"},
			{"busy?q=orders", []string{"op", "cancel", "q", "orders", "id", "a", "back", "busy"}, "busy?did=cancel&n=0&q=orders"},
			{"morgue?q=orders&sort=id&prefix=a", []string{
				"op", "revive", "q", "orders", "id", "zz", "back", "morgue",
			}, "morgue?did=revive&n=0&prefix=a&q=orders&sort=id"},
			{"http://evil.example/skein/morgue?sort=id", []string{
				"op", "revive", "q", "orders", "id", "zz", "back", "morgue",
			}, "morgue?did=revive&n=0&q=orders"},
			{"elsewhere?sort=id", []string{"op", "revive", "q", "orders", "id", "zz", "back", "morgue"}, "morgue?did=revive&n=0&q=orders"},
		} {
			if to, page := h.sent(tt.from, tt.form...); to != tt.want {
				t.Errorf("from %s to %q, want %q: %s", tt.from, to, tt.want, words(page))
			}
		}

		_, page := h.sent("busy", "op", "drop", "q", "orders", "id", "a", "back", "busy")
		if to, _ := h.sent("act",
			"op", "drop", "q", "orders", "id", "a", "back", "busy",
			"back.all", field(t, page, "back.all"), "confirm", "1",
		); to != "busy?did=drop&n=0" {
			t.Errorf("after a question to %q", to)
		}

		h.advance(time.Second)
		r := request(http.MethodGet, "/sheet?q=orders&op=revive&prefix=a", nil)
		r.Header.Set("Referer", "http://localhost:8080/skein/morgue?q=orders&sort=id&prefix=a")
		page = answerOf(h.board, r).Body.String()
		to, _ := h.sent("sheet", "op", "revive", "q", "orders", "bulk", "1", "prefix", "a",
			"before", field(t, page, "before"), "back.sort", field(t, page, "back.sort"))
		if want := "morgue?did=revive&n=3&q=orders&sort=id"; to != want ||
			!strings.Contains(page, `href="morgue?prefix=a&amp;q=orders&amp;sort=id">No`) {
			t.Errorf("after an action on all to %q, want %q: %s", to, want, page)
		}
	})
}
