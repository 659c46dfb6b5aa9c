package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// refusals are the requests that every route refuses, and their requirements.
var refusals = []struct {
	name    string
	options Options
	change  func(*http.Request)
	// all is whether requests that only look are refused too.
	all    bool
	status int
	want   string
}{
	{"a post of another site", Options{}, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, false,
		403, "cross-origin"},
	{"a post of another origin, of an old browser", Options{},
		func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") }, false, 403, "cross-origin"},
	{"rights that refuse", Options{Authorize: func(*http.Request, Action) error { return errors.New("secret reason") }},
		nil, true, 403, "forbidden"},
	{"a foreign host", Options{}, func(r *http.Request) { r.Host = "evil.example" }, true, 421, "foreign-host"},
	{"a host that is not listed", Options{Hosts: []string{"ops.example"}}, nil, true, 421, "foreign-host"},
	{"no host", Options{}, func(r *http.Request) { r.Host = "" }, true, 421, "foreign-host"},
	{"another machine", Options{}, func(r *http.Request) { r.RemoteAddr = "192.0.2.7:999" }, true, 403, "closed"},
	{"no machine", Options{}, func(r *http.Request) { r.RemoteAddr = "@" }, true, 403, "closed"},
	{"a proxy on this machine", Options{}, func(r *http.Request) { r.Header.Set("X-Forwarded-For", "127.0.0.1") }, true,
		403, "closed"},
	{"a large body", Options{}, func(r *http.Request) { r.ContentLength = 2 << 20 }, true, 413, "body-too-large"},
	{"large headers", Options{}, func(r *http.Request) { r.Header.Set("Cookie", strings.Repeat("x", 40<<10)) }, true,
		431, "header-too-large"},
	{"a large query", Options{}, func(r *http.Request) {
		r.URL.RawQuery, r.RequestURI = strings.Repeat("x", 40<<10), ""
	}, true, 431, "header-too-large"},
	{"a format that there is not", Options{}, func(r *http.Request) { r.Header.Set("Accept", "image/png") }, true, 406,
		"not-acceptable"},
}

func TestEveryRouteRefuses(t *testing.T) {
	for _, refusal := range refusals {
		t.Run(refusal.name, func(t *testing.T) {
			h := newHouse(t, refusal.options)
			h.dead("boom", "a")
			for _, route := range table() {
				if !refusal.all && !route.action() {
					continue
				}
				target, body := route.target(t)
				r := request(route.method, target, body)
				if refusal.change != nil {
					refusal.change(r)
				}
				w := answerOf(h.api, r)
				p := refused(t, route.method+" "+route.path, w, refusal.status, refusal.want)
				if strings.Contains(p.Detail, "secret") {
					t.Errorf("the answer tells the reason of Authorize: %s", p.Detail)
				}
				if w.Header().Get("X-Content-Type-Options") != "nosniff" ||
					w.Header().Get("Cache-Control") != "no-store" {
					t.Errorf("%s: headers %v", target, w.Header())
				}
			}
			if n := h.letters(); n != 1 {
				t.Errorf("%d dead letters are left", n)
			}
		})
	}
}

// letters returns how many dead letters the store has.
func (h *house) letters() int64 {
	h.t.Helper()
	stats, err := inspect.New(h.store, inspect.Options{}).Stats(h.t.Context(), "orders")
	if err != nil {
		h.t.Fatal(err)
	}
	return stats[0].Dead
}

// A body of unknown length is cut where it becomes too large.
func TestABodyThatGrowsTooLargeIsRefused(t *testing.T) {
	h := newHouse(t, Options{MaxBodyBytes: 100})
	for _, route := range table() {
		if !route.action() {
			continue
		}
		target, _ := route.target(t)
		r := request(route.method, target, `{"ids":["`+strings.Repeat("x", 200)+`"]}`)
		r.ContentLength = -1
		refused(t, target, answerOf(h.api, r), 413, "body-too-large")
	}
}

func TestReadOnlyHasNoActions(t *testing.T) {
	h := newHouse(t, Options{ReadOnly: true})
	h.dead("boom", "a")
	h.schedule("a", "nightly")
	for _, route := range table() {
		target, body := route.target(t)
		w := answerOf(h.api, request(route.method, target, body))
		switch {
		case route.action() && strings.Contains(w.Body.String(), "not-found"):
			refused(t, target, w, 404, "not-found")
		case route.action():
			refused(t, target, w, 405, "method-not-allowed")
		case w.Code != http.StatusOK:
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
	document := answerOf(h.api, request(http.MethodGet, base+"/openapi.json", "")).Body.String()
	if strings.Contains(document, `"post"`) {
		t.Error("the document of a read-only API has actions")
	}
}

// The routes are available wherever the API is mounted, and the document matches.
func TestEveryRouteIsServedWhereverItIsMounted(t *testing.T) {
	open := Options{Authorize: func(*http.Request, Action) error { return nil }}
	for _, prefix := range []string{"/", "/a", "/a/b/"} {
		for _, slash := range []string{"", "/"} {
			t.Run(prefix+" "+slash, func(t *testing.T) {
				h := newHouse(t, open)
				mux := http.NewServeMux()
				below := strings.TrimSuffix(prefix, "/")
				mux.Handle(below+"/", http.StripPrefix(below+slash, h.api))
				server := httptest.NewServer(mux)
				defer server.Close()
				eachRouteAnswers(t, server.URL+below)
			})
		}
	}
}

// Behind a proxy that strips the prefix, rewrites Host and adds its headers, a page's own origin
// has to be trusted.
func TestEveryRouteIsServedBehindAProxyThatStrips(t *testing.T) {
	open := Options{
		Authorize:      func(*http.Request, Action) error { return nil },
		TrustedOrigins: []string{"https://ops.example.com"}, Hosts: []string{"127.0.0.1"},
	}
	h := newHouse(t, open)
	backend := httptest.NewServer(h.api)
	defer backend.Close()
	to, err := url.Parse(backend.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(to)
		p.Out.URL.Path = strings.TrimPrefix(p.In.URL.Path, "/tools/jobs")
		p.Out.URL.RawPath = ""
		p.SetXForwarded()
	}}
	front := httptest.NewServer(proxy)
	defer front.Close()
	eachRouteAnswers(t, front.URL+"/tools/jobs")
}

// eachRouteAnswers requests each route as a page of ops.example.com would, and wants an answer
// that is the route's.
func eachRouteAnswers(t *testing.T, at string) {
	t.Helper()
	for _, route := range table() {
		target, body := route.target(t)
		r, err := http.NewRequestWithContext(t.Context(), route.method, at+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body == "" {
			r.Body, r.ContentLength = nil, 0
		}
		r.Header.Set("Content-Type", "application/json")
		if strings.Contains(at, "tools") {
			r.Header.Set("Origin", "https://ops.example.com")
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		var p service.Problem
		if err := json.NewDecoder(reply.Body).Decode(&p); err != nil {
			t.Errorf("%s: %v", target, err)
		}
		reply.Body.Close()
		// No server runs, there is no schedule, and the queue is forgotten on the way.
		known := p.Type == "urn:skein:problem:unknown-node" || p.Type == "urn:skein:problem:unknown-queue" ||
			p.Type == "urn:skein:problem:unknown-schedule"
		if reply.StatusCode != http.StatusOK && !known {
			t.Errorf("%s %s: %s %+v", route.method, target, reply.Status, p)
		}
	}
}

func TestWhatIsNoRouteIsAProblem(t *testing.T) {
	h := newHouse(t, Options{})
	for target, want := range map[string]string{
		"/":                       "not-found",
		"/api/v1":                 "not-found",
		"/api/v1/":                "not-found",
		"/api/v1/stats/":          "not-found",
		"/api/v1/queues/a/b/c":    "not-found",
		"/api/v1//stats":          "not-found",
		"/api/v1/queues/../stats": "not-found",
		"/api/v1/./stats":         "not-found",
		"/api/v2/stats":           "not-found",
	} {
		refused(t, target, answerOf(h.api, request(http.MethodGet, target, "")), 404, want)
	}
	refused(t, "DELETE", answerOf(h.api, request(http.MethodDelete, base+"/stats", "")), 405, "method-not-allowed")
	refused(t, "GET of an action",
		answerOf(h.api, request(http.MethodGet, base+"/queues/orders/pause", "")), 405, "method-not-allowed")
	for _, queue := range []string{"nowhere", "a%2Fb", "%2e%2e", "%00"} {
		w := answerOf(h.api, request(http.MethodGet, base+"/queues/"+queue, ""))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: %d %s", queue, w.Code, w.Body)
		}
	}
}
