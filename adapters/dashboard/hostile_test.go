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
	"github.com/skeinq/skein/internal/errorgroup"
	"github.com/skeinq/skein/ports"
)

// ids are those of hostile that a job may have.
func hostileIDs() (ids []string) {
	for _, text := range hostile {
		if core.ValidateID(text) == nil {
			ids = append(ids, text)
		}
	}
	return ids
}

func TestHostileJobsAreText(t *testing.T) {
	h := newHouse(t, Options{})
	h.announce(ports.Node{Name: hostile[0], Queues: []string{"orders"}})
	for n, id := range hostileIDs() {
		h.push("orders", id, 0, append(hostile, "\xff\xfe<script>")...)
		switch n % 3 {
		case 0:
			h.end("orders", core.Failed, strings.Join(hostile, "\n"))
		case 1:
			h.end("orders", core.Buried, hostile[n])
		}
	}
	for index := range houseShards {
		h.turn("orders", index, 100)
	}
	pages := []string{"/", "/queue?q=orders", "/jobs?q=orders", "/jobs?q=orders&list=retries", "/jobs?q=orders&sort=id",
		"/morgue?q=orders", "/morgue?q=orders&sort=id", "/busy", "/busy?q=orders", "/errors", "/errors?q=orders",
		"/sheet?q=orders&op=purge", "/sheet?q=orders&op=delete"}
	for _, id := range hostileIDs() {
		pages = append(pages, "/id?"+url.Values{"q": {"orders"}, "id": {id}}.Encode())
	}
	for _, text := range hostile {
		v := url.QueryEscape(text)
		pages = append(pages, "/?find="+v+"&sort="+v, "/morgue?q=orders&error="+v, "/jobs?q=orders&list="+v+"&sort="+v,
			"/sheet?q=orders&op=revive&error="+v, "/queue?q=orders&by="+v, "/errors?state="+v+"&since="+v,
			"/errors?text="+v+"&open="+url.QueryEscape(errorgroup.Of("", text)))
	}
	for _, target := range pages {
		isText(t, target, h.get(target))
	}
	// Each id in a list leads to its own page.
	links := regexp.MustCompile(`href="(id\?[^"]*)"`)
	var found []string
	for _, target := range []string{"/jobs?q=orders", "/morgue?q=orders", "/busy"} {
		for _, link := range links.FindAllStringSubmatch(h.get(target), -1) {
			to, err := url.Parse(html.UnescapeString(link[1]))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, to.Query().Get("id"))
			says(t, h.get("/"+to.String()), words(html.EscapeString(shown(to.Query().Get("id"))))+" in orders")
		}
	}
	for _, id := range hostileIDs() {
		if !strings.Contains(strings.Join(found, "\n"), id) {
			t.Errorf("no list has a link to %q", id)
		}
	}
	for _, text := range hostile {
		if core.ValidateID(text) == nil {
			r := request(http.MethodGet, "/search?"+url.Values{"for": {text}}.Encode(), nil)
			w := answerOf(h.board, r)
			if to, _ := url.Parse(w.Header().Get("Location")); w.Code != http.StatusSeeOther ||
				to.Query().Get("id") != text || to.Host != "" {
				t.Errorf("the search for %q leads to %q", text, w.Header().Get("Location"))
			}
		}
	}
	h.store.statsFail = errors.New(hostile[0])
	isText(t, "/", h.get("/"))
}

func TestHostileErrorsAreText(t *testing.T) {
	h := newHouse(t, Options{})
	for _, text := range hostile {
		h.board.looker.last, h.store.statsFail = nil, errors.New(text)
		w := answerOf(h.board, request(http.MethodGet, "/", nil))
		isText(t, text, w.Body.String())
		w = answerOf(h.board, request(http.MethodGet, "/id?q=orders&id="+url.QueryEscape(text+"\n"), nil))
		if w.Code != http.StatusBadRequest {
			t.Errorf("%q: status %d", text, w.Code)
		}
		isText(t, text, w.Body.String())
	}
}

func TestRedaction(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{
		RedactID:      func(_, id string) string { return "id-" + fmt.Sprint(len(id)) },
		RedactError:   func(_, _, text string) string { return "error-" + fmt.Sprint(len(text)) },
		RedactPayload: func(string, string, []byte) []byte { return []byte("payload") },
	}})
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}})
	h.push("orders", "secret-a", 0, "secret-p")
	h.end("orders", core.Failed, "secret-e")
	h.push("orders", "secret-dead", 0, "secret-p")
	h.end("orders", core.Buried, "secret-e")
	h.push("orders", "secret-busy", 0, "secret-p")
	for index := range houseShards {
		h.turn("orders", index, 100)
	}
	h.store.checks = []ports.Check{{Name: "memory", Value: "secret-v", Status: ports.CheckWarn}}
	h.store.historyFail = errors.New("secret-h")
	h.board.looker.last = nil
	for _, target := range []string{
		"/", "/queue?q=orders", "/jobs?q=orders", "/morgue?q=orders", "/busy", "/errors", "/store",
		"/sheet?q=orders&op=purge",
	} {
		page := h.get(target)
		saysNot(t, page, "secret", `name="id" value`)
	}
	h.store.statsFail = errors.New("secret-s")
	saysNot(t, h.get("/"), "secret")
	h.board.looker.last = nil
	saysNot(t, answerOf(h.board, request(http.MethodGet, "/", nil)).Body.String(), "secret")
	h.store.statsFail = nil
	// A user who knows an id may ask for it, and is shown none of its contents.
	page := h.get("/id?q=orders&id=secret-a")
	saysNot(t, page, "secret-p", "secret-e")
	says(t, page, "payload", "error-8")
}

func TestWithoutTheRightToPayloads(t *testing.T) {
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(_ *http.Request, a httpapi.Action) error {
		if a.Verb == httpapi.VerbViewPayload {
			return errors.New("no")
		}
		return nil
	}}})
	h.push("orders", "a", time.Hour, "secret")
	page := h.get("/id?q=orders&id=a")
	says(t, page, "You don't have permission to see payloads.",
		"Not due yet, runs in 1 h ◦ not due It was pushed for later, its handler returned Snooze or Await, or the rate of its key has no slot yet.")
	saysNot(t, page, "secret")
}

func TestRecordsThatCanNotBeRead(t *testing.T) {
	h := newHouse(t, Options{})
	for n, text := range hostile {
		h.store.unreadable = append(h.store.unreadable, ports.QuarantinedRecord{
			Key:    fmt.Sprint("key", n),
			ID:     text,
			Place:  ports.PlaceDead,
			Since:  core.InstantOf(epoch),
			Reason: text,
			Stored: []byte(text),
			Size:   len(text),
		})
	}
	says(t, h.get("/"), fmt.Sprintf("orders %d records can't be read: set aside", len(hostile)))
	page := h.get("/unreadable?q=orders")
	isText(t, "/unreadable", page)
	says(t, page, "dead in orders/0, set aside 0 s ago", `▲ a\u202egnp.exe`)
	form := []string{"op", "discard", "q", "orders", "shard", "0", "key", "key3"}
	says(t, h.form(form...).Body.String(), "Discard?", "can't be undone")
	says(t, h.do(append(form, "confirm", "0")...), "The record is removed.")
	if n := len(h.store.unreadable); n != len(hostile)-1 {
		t.Errorf("%d records are left", n)
	}
	if w := h.form(
		"op", "discard", "q", "orders", "shard", "x", "key", "k", "confirm", "0",
	); w.Code != http.StatusBadRequest {
		t.Errorf("status %d", w.Code)
	}
}

// Browsers without scripts can be made to reload, by an address that anyone can pass on.
func TestReloadWithoutScripts(t *testing.T) {
	h := newHouse(t, Options{})
	page := h.get("/queue?q=orders&by=owner")
	again := link(t, page, "reload every 10 s")
	if page = h.get(again); !strings.Contains(page, `<noscript><meta http-equiv="refresh" content="10"></noscript>`) {
		t.Error("it is not reloaded")
	}
	if got := link(t, page, "stop reloading"); got != "/queue?by=owner&q=orders" {
		t.Errorf("reloading ends at %s", got)
	}
	saysNot(t, h.get("/search?for=nix&reload=1"), "refresh")
}

// hostile are texts that try to be more than text.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, "a\u202egnp.exe", "..", "/", "%", "%2e%2e%2f",
	"a&b=c;d+e?f#g", `{{.}}`,
	"javascript:alert(1)", strings.Repeat("x", 512), strings.Repeat("é́", 100), "</time><script>x", "\u2066\u200bzero",
	"😀 👩‍👩‍👧",
}

func TestHostileServersAreText(t *testing.T) {
	h := newHouse(t, Options{Title: `<b onload="x">`})
	for n, text := range hostile {
		h.announce(ports.Node{Owner: fmt.Sprint(n), Name: text, Host: text, Version: text, Queues: []string{"orders"}})
	}
	h.store.checks = []ports.Check{
		{Name: "<i>", Server: hostile[1], Status: ports.CheckFail, Value: hostile[0], Advice: hostile[0]},
	}
	for _, target := range []string{"/", "/queue?q=orders", "/queue?q=orders&by=owner", "/shards?q=orders"} {
		isText(t, target, h.get(target))
	}
}

// values are the values that forms send, unescaped.
var values = regexp.MustCompile(`(?s) value="[^"<>]*"|<textarea [^>]*>[^<>]*</textarea>`)

// isText checks that a page has no markup but its own, and shows nothing that turns text around.
func isText(t testing.TB, target, page string) {
	t.Helper()
	page = values.ReplaceAllString(page, "")
	saysNot(t, page, "<script>", "<img", "<b onload", "<i>", "\u202e", "\u2066", "ZgotmplZ", "<script>x")
	if strings.Count(page, "<script") != 1 {
		t.Errorf("%s has %d scripts", target, strings.Count(page, "<script"))
	}
}
