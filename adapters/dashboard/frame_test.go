package dashboard

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// samples are a request of each route that is answered with a page, and of forms one that acts.
var samples = map[string]struct {
	query string
	form  url.Values
}{
	"GET {$}":        {},
	"GET queue":      {query: "q=orders"},
	"GET shards":     {query: "q=orders"},
	"GET jobs":       {query: "q=orders&list=retries"},
	"GET id":         {query: "q=orders&id=a"},
	"GET search":     {query: "for=nobody"},
	"GET busy":       {query: "q=orders"},
	"GET errors":     {query: "q=orders"},
	"GET morgue":     {query: "q=orders"},
	"GET unreadable": {query: "q=orders"},
	"GET tracked":    {query: "q=orders"},
	"GET schedules":  {},
	"GET named":      {query: "q=orders&name=nightly"},
	"GET schedule":   {query: "q=orders&name=nightly&id=a"},
	"GET settings":   {query: "q=orders&version=0&max-running=20"},
	"GET backfill":   {query: "q=orders&name=nightly&id=a"},
	"GET nodes":      {},
	"GET server":     {query: "node=owner"},
	"GET store":      {},
	"GET audit":      {},
	"GET sheet":      {query: "q=orders&op=purge"},
	"GET steps":      {query: "q=orders&op=purge&before=2030-01-02T15:04:05Z&continue=x&looked=3&total=9"},
	"POST act":       {form: url.Values{"q": {"orders"}, "op": {"pause"}}},
}

// sampled returns the request of a route's sample.
func sampled(t testing.TB, r *route) *http.Request {
	t.Helper()
	s, there := samples[r.method+" "+r.path]
	if !there {
		t.Fatalf("no sample of %s %s", r.method, r.path)
	}
	return request(r.method, "/"+strings.TrimSuffix(r.path, "{$}")+"?"+s.query, s.form)
}

func checkHeaders(t testing.TB, what string, h http.Header) {
	t.Helper()
	const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
		"connect-src 'self'; form-action 'self'; " +
		"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'"
	if h.Get("Content-Security-Policy") != policy || h.Get("X-Content-Type-Options") != "nosniff" ||
		h.Get("Referrer-Policy") != "same-origin" {
		t.Errorf("%s: headers %v", what, h)
	}
	if !strings.Contains(what, assetDir) && h.Get("Cache-Control") != "no-store" {
		t.Errorf("%s may be kept: %v", what, h)
	}
}

func TestEveryPageIsAPage(t *testing.T) {
	h := newHouse(t, Options{})
	h.schedule("orders", "a", "nightly", nil)
	h.announce(ports.Node{Name: "blue", Queues: []string{"orders"}, Lanes: 4})
	for _, r := range table() {
		w := answerOf(h.board, sampled(t, &r))
		checkHeaders(t, r.path, w.Header())
		if r.method == http.MethodPost {
			if w.Code != http.StatusSeeOther && w.Code != http.StatusOK {
				t.Errorf("%s: status %d: %s", r.path, w.Code, words(w.Body.String()))
			}
			continue
		}
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d: %s", r.path, w.Code, words(w.Body.String()))
		}
		body := w.Body.String()
		for _, inline := range []string{" style=", "<style", "javascript:", " onclick", "ZgotmplZ"} {
			if strings.Contains(body, inline) {
				t.Errorf("%s has %s", r.path, inline)
			}
		}
		if strings.Count(body, "<script") != 1 || strings.Count(body, "<h1") != 1 {
			t.Errorf("%s has %d scripts and %d headings",
				r.path, strings.Count(body, "<script"), strings.Count(body, "<h1"))
		}
		for _, link := range regexp.MustCompile(`(?:href|src|action)="([^"]*)"`).FindAllStringSubmatch(body, -1) {
			if strings.HasPrefix(link[1], "/") || strings.Contains(link[1], "//") {
				t.Errorf("%s links to %s, which no prefix goes before", r.path, link[1])
			}
		}
		head := sampled(t, &r)
		head.Method = http.MethodHead
		if w := answerOf(h.board, head); w.Code != http.StatusOK || w.Body.Len() != 0 {
			t.Errorf("HEAD %s: status %d, %d bytes", r.path, w.Code, w.Body.Len())
		}
	}
}

var refusals = []struct {
	name    string
	options httpapi.Options
	change  func(*http.Request)
	acts    bool // only actions are refused
	status  int
	says    string
}{
	{"rights that refuse", httpapi.Options{Authorize: func(*http.Request, httpapi.Action) error {
		return errors.New("secret reason")
	}}, nil, false, 403, "Not allowed"},
	{"another machine", httpapi.Options{}, func(r *http.Request) {
		r.RemoteAddr = "192.0.2.7:99"
	}, false, 403, "only requests from this machine are served"},
	{"a proxy on this machine", httpapi.Options{}, func(r *http.Request) {
		r.Header.Set("X-Forwarded-For", "127.0.0.1")
	}, false, 403, "that no proxy has forwarded"},
	{"a foreign host", httpapi.Options{}, func(r *http.Request) { r.Host = "evil.example" }, false, 421, "host name"},
	{"a form of another site", httpapi.Options{}, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, true, 403, "another site"},
	{"a form of another origin, of an old browser", httpapi.Options{}, func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", "https://evil.example")
	}, true, 403, "TrustedOrigins"},
	{"a form that is none", httpapi.Options{}, func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") }, true, 415, "not a form"},
	{"a form that is too large", httpapi.Options{}, func(r *http.Request) { r.ContentLength = 2 << 20 }, true, 413, "too large"},
	{"a form that is larger than it says", httpapi.Options{MaxBodyBytes: 5}, func(r *http.Request) { r.ContentLength = -1 }, true, 400, "too large"},
	{"text that is not UTF-8", httpapi.Options{}, func(r *http.Request) { r.URL.RawQuery = "q=orders&id=%ff" }, false, 400, "not UTF-8"},
	{"a query that can't be read", httpapi.Options{}, func(r *http.Request) { r.URL.RawQuery = "q=%zz" }, false, 400, "can't be read"},
}

func TestEveryPageRefuses(t *testing.T) {
	for _, refusal := range refusals {
		t.Run(refusal.name, func(t *testing.T) {
			h := newHouse(t, Options{API: refusal.options})
			if _, err := h.board.looker.look(t.Context()); err != nil || len(h.board.looker.queues()) == 0 {
				t.Fatalf("no queue is known, error %v", err)
			}
			for _, route := range table() {
				if refusal.acts && route.method != http.MethodPost {
					continue
				}
				r := sampled(t, &route)
				if refusal.change != nil {
					refusal.change(r)
				}
				w := answerOf(h.board, r)
				checkHeaders(t, route.path, w.Header())
				if w.Code != refusal.status {
					t.Errorf("%s %s: status %d, want %d: %s",
						route.method, route.path, w.Code, refusal.status, words(w.Body.String()))
				}
				says(t, w.Body.String(), refusal.says)
				saysNot(t, w.Body.String(), "secret", "<option")
			}
			stats, err := inspect.New(h.store, inspect.Options{}).Stats(t.Context(), "orders")
			if err != nil || stats[0].Queue.Paused {
				t.Errorf("the queue is paused, or %v", err)
			}
		})
	}
}

// Rights are checked for each page and again for its calls of the API, always with the queue.
func TestRightsHoldByQueue(t *testing.T) {
	var actions []httpapi.Action
	h := newHouse(t, Options{API: httpapi.Options{Authorize: func(r *http.Request, a httpapi.Action) error {
		if r.Header.Get("Cookie") != "who=ann" {
			return errors.New("nobody")
		}
		actions = append(actions, a)
		if a.Queue != "orders" {
			return errors.New("another's")
		}
		return nil
	}, Actor: func(*http.Request) string { return "ann" }}})
	h.declare("mails", 1)
	for target, status := range map[string]int{
		"/":               200,
		"/nodes":          403,
		"/queue?q=orders": 200,
		"/queue?q=mails":  403,
		"/queue?q=nix":    403,
		"/queue?q=%2e%2e": 404,
		"/queue":          404,
	} {
		r := request(http.MethodGet, target, nil)
		r.Header.Set("Cookie", "who=ann")
		w := answerOf(h.board, r)
		if w.Code != status {
			t.Errorf("%s: status %d, want %d", target, w.Code, status)
		}
		saysNot(t, w.Body.String(), `value="mails"`)
		if status == 200 {
			says(t, w.Body.String(), "ann")
		}
	}
	actions = nil
	r := request(http.MethodPost, "/act", url.Values{"q": {"orders"}, "op": {"pause"}})
	r.Header.Set("Cookie", "who=ann")
	if w := answerOf(h.board, r); w.Code != http.StatusSeeOther {
		t.Errorf("status %d: %s", w.Code, words(w.Body.String()))
	}
	if last := actions[len(actions)-1]; last.Verb != httpapi.VerbPause || last.Queue != "orders" {
		t.Errorf("asked for %+v", actions)
	}
}

func TestReadOnlyHasNothingThatActs(t *testing.T) {
	h := newHouse(t, readOnly)
	h.ended(core.Buried, "boom", "a")
	h.push("orders", "runs", 0, "x")
	h.schedule("orders", "a", "nightly", nil)
	for index := range h.shards("orders") {
		h.turn("orders", index, 1)
	}
	says(t, h.get("/busy"), "runs")
	for _, r := range table() {
		w := answerOf(h.board, sampled(t, &r))
		if r.acts {
			if w.Code != http.StatusNotFound {
				t.Errorf("%s: status %d", r.path, w.Code)
			}
			continue
		}
		if w.Code == http.StatusSeeOther { // the result of one queue
			continue
		}
		saysNot(t, w.Body.String(), `method="post"`, `class="actions"`, `class="cancel"`)
		says(t, w.Body.String(), "read-only")
	}
}

func TestThereIsNoSuchPage(t *testing.T) {
	h := newHouse(t, Options{})
	for _, target := range []string{
		"/nix", "/queue/", "/assets/", "/assets/dashboard.css", "/assets/../queue?q=orders",
		"//queue?q=orders", "/queue?q=nix", "/queue?q=a/b",
	} {
		w := answerOf(h.board, request(http.MethodGet, target, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d to %q", target, w.Code, w.Header().Get("Location"))
		}
		checkHeaders(t, target+assetDir, w.Header())
	}
	if w := answerOf(h.board, request(http.MethodGet, "/act", nil)); w.Code != http.StatusNotFound &&
		w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a form that is got: status %d", w.Code)
	}
}

func TestTheAPIIsInside(t *testing.T) {
	h := newHouse(t, Options{})
	w := answerOf(h.board, request(http.MethodGet, "/api/v1/queues", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"orders"`) {
		t.Errorf("status %d: %s", w.Code, w.Body)
	}
	if _, err := New(nil, Options{}); !errors.Is(err, inspect.ErrInvalidOptions) {
		t.Errorf("without an inspector: %v", err)
	}
}

// A line of a template can be read without scrolling sideways. Text that must not have white space
// is broken inside a tag, or beside an action that trims it.
func TestTemplatesHaveShortLines(t *testing.T) {
	const most = 160
	list, err := fs.Glob(files, "pages/*.html")
	if err != nil || len(list) < 10 {
		t.Fatalf("there are the templates %q, error %v", list, err)
	}
	for _, file := range list {
		data, err := files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n, line := range strings.Split(string(data), "\n") {
			if length := utf8.RuneCountInString(line); length > most {
				t.Errorf("%s:%d has %d characters, %d are the most", file, n+1, length, most)
			}
		}
	}
}

func TestSizes(t *testing.T) {
	h := newHouse(t, Options{})
	first := len(h.get("/"))
	for name, data := range assets {
		w := answerOf(h.board, request(http.MethodGet, "/"+assetDir+name, nil))
		if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			w.Body.Len() != len(data) {
			t.Errorf("%s: status %d, %v", name, w.Code, w.Header())
		}
		first += w.Body.Len()
	}
	for _, file := range []string{"assets/dashboard.js", "assets/dashboard.css"} {
		data, err := files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, unsafe := range []string{
			"innerHTML", "outerHTML", "eval(", "http:", "https:", "@import", "document.write",
		} {
			if strings.Contains(string(data), unsafe) {
				t.Errorf("%s has %s", file, unsafe)
			}
		}
	}
	if first > 150_000 {
		t.Errorf("the first page with its assets has %d bytes", first)
	}
	h.declare("large", 1000)
	for n := range 1000 {
		h.push("large", fmt.Sprint(n), -time.Duration(n)*time.Second, "p")
	}
	for target, most := range map[string]int{
		"/queue?q=large":          60_000,
		"/queue?q=large&by=owner": 60_000,
		"/shards?q=large":         120_000,
	} {
		if n := len(h.get(target)); n > most {
			t.Errorf("%s of 1,000 shards has %d bytes, %d are the most", target, n, most)
		}
	}
}
