package dashboard

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports/storekit"
)

// Whichever call of the store fails, a page shows the error instead of an empty result.
func TestNoPageHidesAnErrorOfTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const text = "refused by the test"
		// silent are calls whose failure a page shows in a way of its own, or that are not for it but for
		// the frame around it.
		silent := func(target, method string) bool {
			switch method {
			case "History", "Nodes", "Permit":
				return true
			case "Ticks": // also for what is wrong
				return !strings.HasPrefix(target, "/schedules")
			case "Groups": // also for how many died of late
				return !strings.HasPrefix(target, "/morgue")
			case "Morgue":
				return !strings.HasPrefix(target, "/morgue") && !strings.HasSuffix(target, "=revive") &&
					!strings.HasSuffix(target, "=purge")
			case "ScheduleNames": // also for what is wrong
				return !strings.HasPrefix(target, "/schedules") && !strings.HasPrefix(target, "/queue")
			case "Stats", "Queues":
				return strings.HasPrefix(target, "/id")
			}
			return false
		}
		for _, target := range []string{
			"/", "/queue?q=orders", "/jobs?q=orders", "/jobs?q=orders&list=retries", "/jobs?q=orders&list=scheduled",
			"/morgue?q=orders", "/morgue?q=orders&sort=id", "/morgue?q=orders&error=x", "/errors", "/errors?q=orders&open=boom",
			"/schedules", "/schedules?q=orders", "/named?q=orders&name=nightly", "/schedule?q=orders&name=nightly&id=a",
			"/busy", "/busy?q=orders", "/id?q=orders&id=a", "/search?for=a", "/store", "/unreadable?q=orders",
			"/sheet?q=orders&op=revive", "/sheet?q=orders&op=purge", "/sheet?q=orders&op=delete",
		} {
			h := newHouse(t, Options{})
			h.ended(core.Buried, "boom", "a")
			h.ended(core.Failed, "boom", "b")
			h.schedule("orders", "a", "nightly", func(s *core.Schedule) {
				s.Recent = []core.Tick{{Outcome: core.TickFired}}
			})
			h.push("orders", "c", 0, "p")
			h.turn("orders", core.ShardOf("c", houseShards), 1)
			var called sync.Map // some calls are made at once
			failing := ""
			board := h.over(func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				if called.Store(call.Method, true); call.Method == failing {
					return errors.New(text)
				}
				return next(ctx)
			}, Options{})
			if w := answerOf(board, request(http.MethodGet, target, nil)); w.Code >= http.StatusBadRequest {
				t.Fatalf("%s: status %d: %s", target, w.Code, words(w.Body.String()))
			}
			var methods []string
			called.Range(func(method, _ any) bool { methods = append(methods, method.(string)); return true })
			for _, method := range methods {
				if failing = method; silent(target, method) {
					continue
				}
				board.looker.last = nil
				w := answerOf(board, request(http.MethodGet, target, nil))
				if !strings.Contains(w.Body.String(), text) {
					t.Errorf("%s, of which %s fails: status %d: %s", target, method, w.Code, words(w.Body.String()))
				}
			}
		}
	})
}

// over returns a dashboard of the store that calls something around each call.
func (h *house) over(around storekit.Interceptor, o Options) *Dashboard {
	h.t.Helper()
	board, err := New(
		inspect.New(storekit.Intercept(h.store, around), inspect.Options{Logger: slog.New(slog.DiscardHandler)}), o,
	)
	if err != nil {
		h.t.Fatal(err)
	}
	board.looker.clock = stands
	return board
}

// An address alone never acts, whatever action it names.
func TestSheetsAndStepsAreOfActionsOnAllAlone(t *testing.T) {
	h := newHouse(t, Options{})
	h.ended(core.Buried, "boom", "a")
	for name, o := range ops {
		for _, target := range []string{
			"/sheet?q=orders&op=" + name, "/steps?q=orders&before=2030-01-02T15:04:05Z&continue=x&op=" + name,
		} {
			if w := answerOf(h.board, request(
				http.MethodGet, target, nil,
			)); (w.Code == http.StatusOK) != (o.all != nil) {
				t.Errorf("%s: status %d: %s", target, w.Code, words(w.Body.String()))
			}
		}
	}
	if s := h.stats(); s.Dead != 1 || s.Queue.Paused {
		t.Errorf("%+v", s)
	}
}

// A purge that takes several calls is confirmed once.
func TestPurgeOfAllGoesOnInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.ended(core.Buried, "boom", numbered("a", 1500)...)
		h.advance(time.Second)
		before := field(t, h.get("/sheet?q=orders&op=purge"), "before")
		confirm := field(t, h.form(
			"op", "purge", "q", "orders", "bulk", "1", "before", before, "confirm", "x",
		).Body.String(), "confirm")
		page := h.do("op", "purge", "q", "orders", "bulk", "1", "before", before, "confirm", confirm)
		if n := h.stats().Dead; n == 0 || n == 1500 {
			t.Fatalf("%d are left", n)
		}
		says(t, h.do("op", "purge", "q", "orders", "bulk", "1", "before", before,
			"continue", field(t, page, "continue")), "1500 removed permanently")
	})
}

// An action that fails is shown as one that failed, whole or in part.
func TestFailuresOfActionsAreShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, Options{})
		h.ended(core.Buried, "boom", "a")
		h.advance(time.Second)
		h.store.fails = errors.New("refused by the test")
		w := h.form("op", "edit", "q", "orders", "id", "a", "old", "cA==", "new", "q", "then", "revive", "confirm", "1")
		if w.Code < http.StatusInternalServerError || !strings.Contains(w.Body.String(), "refused by the test") {
			t.Errorf("a revive after an edit: status %d: %s", w.Code, words(w.Body.String()))
		}
		if w := h.form(
			"op", "edit", "q", "orders", "id", "a", "old", "cQ!", "new", "",
		); w.Code != http.StatusBadRequest {
			t.Errorf("a payload that can't be read is replaced: status %d", w.Code)
		}
		h.store.statsFail = errors.New("refused by the test")
		for _, op := range []string{"revive", "purge"} {
			w := h.form("op", op, "q", "orders", "bulk", "1", "before", "2030-01-02T15:04:05Z", "confirm", "0")
			if w.Code < http.StatusInternalServerError || !strings.Contains(w.Body.String(), "refused by the test") {
				t.Errorf("%s: status %d: %s", op, w.Code, words(w.Body.String()))
			}
		}
	})
}

// A request that can't be distinguished from another site's counts as one.
func TestWhoIsNotFromHere(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(*http.Request, httpapi.Action) error { return nil }}})
	for _, referer := range []string{"", "/", "steps", "http://[::1"} {
		r := request(http.MethodGet,
			"/steps?q=orders&op=revive&before=2030-01-02T15:04:05Z&continue=x&looked=3&total=9", nil)
		r.Host = ""
		r.Header.Set("Referer", referer)
		if w := answerOf(h.board, r); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "data-auto") {
			t.Errorf("referrer %q: status %d, or it goes on by itself", referer, w.Code)
		}
	}
}

// A browser's headers for a page are not meant for the page's calls of the API.
func TestHeadersOfAPageAreNotThoseOfItsQuestions(t *testing.T) {
	h := newHouse(t, Options{})
	h.push("orders", "a", 0, "p")
	for name, value := range map[string]string{
		"Accept":        "text/html",
		"If-None-Match": "*",
		"Content-Type":  "text/plain",
	} {
		r := request(http.MethodGet, "/jobs?q=orders", nil)
		r.Header.Set(name, value)
		if w := answerOf(h.board, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), ">a<") {
			t.Errorf("%s: %s: status %d: %s", name, value, w.Code, words(w.Body.String()))
		}
	}
}

// Only users who may see all queues get their names.
func TestNamesOfQueuesAreForWhoMaySeeThem(t *testing.T) {
	only := ""
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if only != "" && a.Queue != only {
			return errors.New("no")
		}
		return nil
	}}})
	h.declare("mails", 1)
	h.push("orders", "a", 0, "p")
	h.get("/")
	if page := h.get("/jobs?q=orders"); !strings.Contains(page, `value="mails"`) {
		t.Error("no name of the other queue")
	}
	only = "orders"
	saysNot(t, h.get("/jobs?q=orders"), "mails")
	saysNot(t, h.get("/queue?q=orders"), "mails")
}

// Each character that is invisible, or that turns or joins its surroundings, is escaped.
func TestNoCharacterHides(t *testing.T) {
	for _, tt := range []struct{ first, last rune }{
		{0x00, 0x1f},
		{0x7f, 0x9f},
		{0xad, 0xad},
		{0x61c, 0x61c},
		{0x200b, 0x200b},
		{0x200e, 0x200f},
		{0x2028, 0x202e},
		{0x2060, 0x2060},
		{0x2066, 0x2069},
		{0xfeff, 0xfeff},
		{0xe0000, 0xe007f},
	} {
		for r := tt.first; r <= tt.last; r++ {
			if got, want := shown("a"+string(r)), fmt.Sprintf(`a\u%04x`, r); got != want {
				t.Errorf("%U is shown as %q, want %q", r, got, want)
			}
		}
	}
	for _, r := range []rune{
		' ', '~', 0xa0, 'é', 0x200a, 0x2010, 0x2027, 0x202f, 0x2065, 0x206a, 0xdffff, 0xe0080, '😀',
	} {
		if got := shown(string(r)); got != string(r) {
			t.Errorf("%U is shown as %q", r, got)
		}
	}
}

// A read-only dashboard has all pages that do nothing.
func TestReadOnlyHasThePagesThatLook(t *testing.T) {
	h := newHouse(t, readOnly)
	h.ended(core.Buried, "boom", "a")
	for _, target := range []string{
		"/", "/queue?q=orders", "/jobs?q=orders", "/morgue?q=orders", "/busy", "/errors", "/nodes", "/store",
		"/id?" + url.Values{"q": {"orders"}, "id": {"a"}}.Encode(),
	} {
		if w := answerOf(h.board, request(http.MethodGet, target, nil)); w.Code != http.StatusOK {
			t.Errorf("%s: status %d", target, w.Code)
		}
	}
}
