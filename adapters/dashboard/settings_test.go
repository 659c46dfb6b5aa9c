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

// asAnn lets ann act.
func asAnn() Options {
	return Options{API: httpapi.Options{Actor: func(*http.Request) string { return "ann" }}}
}

// served announces a server of orders whose code has these values and that follows a version.
func (h *house) served(name string, version int64, code map[string]string) {
	h.t.Helper()
	h.announce(ports.Node{
		Owner: "owner of " + name, Name: name, Queues: []string{"orders"}, Lanes: 8,
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{{
			Queue: "orders", Code: code, SettingsVersion: version, MaxRunning: 50, BatchSize: 1,
		}}},
	})
}

// confirmed returns the form that stores a previewed change of settings.
func confirmed(t *testing.T, preview string, more ...string) []string {
	t.Helper()
	_, post, _ := strings.Cut(preview, `<form method="post"`)
	post, _, _ = strings.Cut(post, "</form>")
	form := append([]string{"op", "configure", "reason", "the bank is slow"}, more...)
	for _, name := range []string{"q", "back", "version"} {
		form = append(form, name, field(t, post, name))
	}
	return form
}

// configured changes settings of orders as somebody.
func (h *house) configured(by string, namesAndValues ...string) {
	h.t.Helper()
	queues, err := h.store.Queues(h.t.Context())
	if err != nil {
		h.t.Fatal(err)
	}
	var changes []core.SettingChange
	for at := 0; at < len(namesAndValues); at += 2 {
		changes = append(changes, core.SettingChange{Name: namesAndValues[at], Value: namesAndValues[at+1]})
	}
	next, err := queues[0].Settings.Change(changes, by, core.InstantOf(h.clock()))
	if err == nil {
		err = h.store.Configure(h.t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: next})
	}
	if err != nil {
		h.t.Fatal(err)
	}
}

// A change of settings is previewed and then stored, and shown beside the code.
func TestSettingsAreChanged(t *testing.T) {
	h := newHouse(t, asAnn())
	code := map[string]string{"max-running": "50"}
	h.served("blue", 0, code)
	h.served("red", 0, code)

	page := h.get("/queue?q=orders")
	says(t, page, "Limits and settings by the code of its servers change … settings", "max-running 50 code",
		"max-lanes no limit code", "morgue-age for ever code", "batch 1 code")
	saysNot(t, page, "max running")
	form := h.get("/settings?q=orders")
	says(t, form, "Settings of orders", "none was ever set", "max-running 50 code",
		"a whole number from 1 to 1048576, or 0 for no limit", "Preview")
	saysNot(t, form, `action="act"`)

	preview := h.get("/settings?q=orders&version=0&max-running=20&max-lanes=&morgue-age=&morgue-count=")
	says(t, preview, "The change nothing is stored yet", "max-running unset 20", "Store")
	saysNot(t, preview, "max-lanes unset unset")
	if queues, err := h.store.Queues(t.Context()); err != nil || queues[0].Settings.Version != 0 {
		t.Errorf("a preview has stored %+v, %v", queues, err)
	}

	after := h.do(confirmed(t, preview, "max-running", "20")...)
	says(t, after, "The settings are stored. Servers follow within seconds.",
		"version 1, changed by ann 0 s ago; 0 of 2 servers follow, but not blue, red",
		"max-running 20 set by ann 0 s ago; code has 50", "MaxRunning 50, set by ann")
	h.served("blue", 1, code)
	says(t, h.get("/queue?q=orders"), "1 of 2 servers follow, but not red")
	says(t, h.get("/audit"), "configure", "max-running=20", "the bank is slow", "ann", "1 changed")

	unset := h.get("/settings?q=orders&version=1&max-running=")
	says(t, unset, "max-running 20 unset")
	says(t, h.do(confirmed(t, unset, "unset", "max-running")...), "version 2, changed by ann", "max-running 50 code")
	says(t, h.get("/settings?q=orders&version=2&max-running="), "Nothing changes: the settings have these values already.")
}

// A server that runs by another limit than the others shows which one an operator has set.
func TestAServerThatDiffersShowsWhatIsSet(t *testing.T) {
	h := newHouse(t, asAnn())
	h.configured("ann", "max-running", "20")
	h.served("blue", 0, nil)
	for _, name := range []string{"green", "red"} {
		h.announce(ports.Node{
			Owner: "owner of " + name, Name: name, Queues: []string{"orders"},
			Status: ports.NodeStatus{Queues: []ports.QueueStatus{{
				Queue: "orders", SettingsVersion: 1, MaxRunning: 20, BatchSize: 1,
			}}},
		})
	}
	says(t, h.get("/server?node=blue"), "orders : max running 20 was set by ann 50 20")
}

// Of two operators one is shown who has changed what, and the present values, before and after the
// preview.
func TestAConflictOfSettingsNamesWhoChangedWhat(t *testing.T) {
	h := newHouse(t, asAnn())
	const change = "/settings?q=orders&version=0&max-running=20&max-lanes="
	store := confirmed(t, h.get(change), "max-running", "20")
	h.configured("bob", "max-lanes", "3")

	for what, w := range map[string]func() (int, string){
		"a preview": func() (int, string) {
			w := answerOf(h.board, request(http.MethodGet, change, nil))
			return w.Code, w.Body.String()
		},
		"a form": func() (int, string) { w := h.form(store...); return w.Code, w.Body.String() },
	} {
		status, page := w()
		if status != http.StatusConflict {
			t.Errorf("%s: status %d", what, status)
		}
		says(t, page, "Not stored: ", `bob changed them at 2030-01-02 03:04:00 UTC: max-lanes to "3"`,
			"Below are the present settings. Your change was: max-running=20", "max-lanes 3 set by bob 0 s ago",
			"version 1, changed by bob")
		if field(t, page, "version") != "1" || field(t, page, "max-lanes") != "3" {
			t.Errorf("%s: the form has not the present settings: %s", what, words(page))
		}
		saysNot(t, page, `value="configure"`)
	}
}

// A wrong value keeps the form, and states what is accepted.
func TestWrongSettingsAreNotAccepted(t *testing.T) {
	h := newHouse(t, Options{})
	w := answerOf(h.board, request(http.MethodGet, "/settings?q=orders&version=0&max-running=many", nil))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), `name="max-running" value="many"`) {
		t.Errorf("status %d: %s", w.Code, words(w.Body.String()))
	}
	says(t, w.Body.String(), "Not accepted: ", "use a whole number from 1 to 1048576")
	saysNot(t, w.Body.String(), `action="act"`)
	h.answers(map[string]int{
		"/settings?q=orders&version=x": 400, "/settings?q=nix": 404, "/settings": 404,
	})
	if w := h.form("op", "configure", "q", "orders", "max-running", "3"); w.Code != http.StatusBadRequest {
		t.Errorf("a form without a version: status %d", w.Code)
	}
}

// A bound of the morgue shows what goes first and when, and the queue's page announces it.
func TestBoundsOfTheMorgueAreAnnounced(t *testing.T) {
	h := newHouse(t, asAnn())
	h.ended(core.Buried, "boom", "a", "b")
	h.served("blue", 0, nil)
	h.advance(49 * time.Hour)
	h.served("blue", 0, nil)
	preview := h.get("/settings?q=orders&version=0&morgue-age=1d")
	says(t, preview, "morgue-age unset 1d", "Servers will remove those that last changed more than 1d ago.",
		"The queue has 2 dead letters, and the oldest last changed 2 d ago: it goes first, about 10 min from now.")
	says(t, h.do(confirmed(t, preview, "morgue-age", "24h0m0s")...),
		"From 2030-01-04 04:14:00 UTC on: Servers begin to remove dead letters by morgue-age 1d; the queue has 2 dead letters.")

	h.advance(11 * time.Minute)
	saysNot(t, h.get("/queue?q=orders"), "Servers begin to remove")
	says(t, h.get("/settings?q=orders&version=1&morgue-age=&morgue-count="), "morgue-age 1d unset")
}

// Settings of a newer version are shown, and may be unset.
func TestUnknownSettingsMayBeUnset(t *testing.T) {
	h := newHouse(t, asAnn())
	s := core.Settings{Version: 1, By: "bob", Set: []core.Setting{{Name: "zones", Value: "a b", By: "bob"}}}
	if err := h.store.Configure(t.Context(), ports.ConfigureRequest{Queue: "orders", Settings: s}); err != nil {
		t.Fatal(err)
	}
	says(t, h.get("/queue?q=orders"), "zones unknown set to \"a b\", which only a newer version can read, by bob")
	preview := h.get("/settings?q=orders&version=1&unset=zones&max-lanes=2")
	says(t, preview, "max-lanes unset 2", "zones a b unset")
	h.do(confirmed(t, preview, "unset", "zones", "max-lanes", "2")...)
	if queues, err := h.store.Queues(t.Context()); err != nil || len(queues[0].Settings.Set) != 1 {
		t.Errorf("stored are %+v, %v", queues, err)
	}
}

// Who may not change settings sees no link to the form, and gets neither the form nor an effect.
func TestSettingsNeedTheRight(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb == httpapi.VerbConfigure && a.Queue == "orders" {
			return errors.New("not that")
		}
		return nil
	}}})
	h.declare("mails", 1)
	saysNot(t, h.get("/queue?q=orders"), "settings?q=")
	says(t, h.get("/queue?q=mails"), "change …")
	h.answers(map[string]int{
		"/settings?q=orders": 403, "/settings?q=orders&version=0&max-running=3": 403, "/settings?q=mails": 200,
	})
	if w := h.form("op", "configure", "q", "orders", "version", "0", "max-running", "3"); w.Code != http.StatusForbidden {
		t.Errorf("a form: status %d", w.Code)
	}
	queues, err := h.store.Queues(t.Context())
	if err != nil || queues[0].Settings.Version != 0 || queues[1].Settings.Version != 0 {
		t.Errorf("stored are %+v, %v", queues, err)
	}
}
