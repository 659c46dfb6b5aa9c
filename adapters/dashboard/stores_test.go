package dashboard

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
)

// mounted serves houses at one address, by their names.
func mounted(t *testing.T, mounts ...Mount) *Stores {
	t.Helper()
	s, err := NewStores(mounts...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// cookie refuses requests without a cookie.
func cookie(want string) httpapi.Options {
	return httpapi.Options{Authorize: func(r *http.Request, _ httpapi.Action) error {
		if !strings.Contains(r.Header.Get("Cookie"), want) {
			return errors.New("not you")
		}
		return nil
	}}
}

// as sends a request with a cookie.
func as(h http.Handler, who, method, target string, form url.Values) *httptest.ResponseRecorder {
	r := request(method, target, form)
	r.Header.Set("Cookie", who)
	return answerOf(h, r)
}

const picked = `<details class="stores">`

// Each store has its own pages, API and actions below its name, at any prefix, and a picker of the
// others.
func TestStoresShareAnAddress(t *testing.T) {
	production, billing := newHouse(t, Options{Title: "production, Redis"}), newHouse(t, Options{})
	billing.declare("invoices", 1)
	stores := mounted(t, Mount{"production", production.board}, Mount{"billing.eu", billing.board})
	mux := http.NewServeMux()
	mux.Handle("/ops/jobs/", http.StripPrefix("/ops/jobs", stores))
	for target, to := range map[string]string{
		"/":               "./production/",
		"/production":     "./production/",
		"/billing.eu?a=b": "./billing.eu/?a=b",
	} {
		if w := answerOf(stores, request(http.MethodGet, target, nil)); w.Header().Get("Location") != to ||
			w.Code/100 != 3 {
			t.Errorf("%s leads with status %d to %q, want %q", target, w.Code, w.Header().Get("Location"), to)
		}
	}
	w := answerOf(http.StripPrefix("/ops/jobs", stores), request(http.MethodGet, "/ops/jobs", nil))
	if to := w.Header().Get("Location"); to != "./jobs/production/" {
		t.Errorf("a prefix without its slash leads to %q", to)
	}
	page := answerOf(mux, request(http.MethodGet, "/ops/jobs/billing.eu/queue?q=invoices", nil)).Body.String()
	for _, want := range []string{
		picked,
		`<a href="../production/">production</a><a href="../billing.eu/" aria-current="true">billing.eu</a>`,
		`<a class="brand" href="./" title="billing.eu">billing.eu</a>`, "· billing.eu</title>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in %s", want, page)
		}
	}
	says(t, answerOf(mux, request(http.MethodGet, "/ops/jobs/production/", nil)).Body.String(),
		"production, Redis", "orders")
	if w := answerOf(mux, request(http.MethodGet, "/ops/jobs/billing.eu/api/v1/queues", nil)); !strings.Contains(
		w.Body.String(), `"invoices"`,
	) {
		t.Errorf("the API of a store: status %d: %s", w.Code, w.Body)
	}
	w = answerOf(mux,
		request(http.MethodPost, "/ops/jobs/billing.eu/act", url.Values{"q": {"orders"}, "op": {"pause"}}))
	if w.Code != http.StatusSeeOther {
		t.Errorf("an action: status %d", w.Code)
	}
	for h, paused := range map[*house]bool{production: false, billing: true} {
		if stats, err := inspect.New(h.store, inspect.Options{}).Stats(t.Context(), "orders"); err != nil ||
			stats[0].Queue.Paused != paused {
			t.Errorf("paused %v, error %v", !paused, err)
		}
	}
	for _, target := range []string{
		"/nix/", "/nix", "/production/nix", "/productio", "/Production/", "//", "//production/",
	} {
		w := answerOf(stores, request(http.MethodGet, target, nil))
		if w.Code != http.StatusNotFound {
			t.Errorf("%s: status %d", target, w.Code)
		}
		checkHeaders(t, target, w.Header())
	}
	crawl(t, http.StripPrefix("/x", mounted(t, Mount{"only", newHouse(t, Options{}).board})), "/x/only/")
}

// A user who may not see a store does not find it in the picker, and is refused there as if it
// were alone.
func TestStoresKeepTheirRights(t *testing.T) {
	production, billing := newHouse(t, Options{API: cookie("ops")}), newHouse(t, Options{API: cookie("money")})
	stores := mounted(t, Mount{"production", production.board}, Mount{"billing", billing.board})
	for who, want := range map[string]struct {
		first      string
		statuses   [2]int
		hasPickers bool
	}{
		"ops":        {"./production/", [2]int{200, 403}, false},
		"money":      {"./billing/", [2]int{403, 200}, false},
		"ops, money": {"./production/", [2]int{200, 200}, true},
		"nobody":     {"", [2]int{403, 403}, false},
	} {
		bare := as(stores, who, http.MethodGet, "/", nil)
		if to := bare.Header().Get("Location"); to != want.first {
			t.Errorf("%s is led to %q, want %q", who, to, want.first)
		}
		if want.first == "" &&
			(bare.Code != http.StatusForbidden || strings.Contains(bare.Body.String(), "production")) {
			t.Errorf("%s: status %d, and is told of a store: %s", who, bare.Code, words(bare.Body.String()))
		}
		for at, name := range []string{"production", "billing"} {
			w := as(stores, who, http.MethodGet, "/"+name+"/", nil)
			if has := strings.Contains(w.Body.String(), picked); w.Code != want.statuses[at] || has != want.hasPickers {
				t.Errorf("%s of %s: status %d, want %d; a picker: %v", name, who, w.Code, want.statuses[at], has)
			}
			alone := as(map[string]*house{"production": production, "billing": billing}[name].board,
				who, http.MethodGet, "/", nil)
			if w.Code != alone.Code {
				t.Errorf("%s of %s: status %d, alone %d", name, who, w.Code, alone.Code)
			}
		}
	}
	// Of a dashboard that serves the same machine alone others learn nothing.
	local := newHouse(t, Options{})
	stores = mounted(t, Mount{"production", production.board}, Mount{"local", local.board})
	r := request(http.MethodGet, "/production/", nil)
	r.Header.Set("Cookie", "ops")
	r.RemoteAddr = "192.0.2.7:99"
	if w := answerOf(stores, r); w.Code != http.StatusOK || strings.Contains(w.Body.String(), picked) {
		t.Errorf("status %d, and a picker: %s", w.Code, words(w.Body.String()))
	}
}

func TestStoresNeedNames(t *testing.T) {
	board := newHouse(t, Options{}).board
	long := strings.Repeat("x", 64)
	for name, tt := range map[string]struct {
		mounts []Mount
		ok     bool
	}{
		"none":           {nil, false},
		"one":            {[]Mount{{"a", board}}, true},
		"all characters": {[]Mount{{"a-B_1.c", board}, {long, board}}, true},
		"too long":       {[]Mount{{long + "x", board}}, false},
		"empty":          {[]Mount{{"", board}}, false},
		"a slash":        {[]Mount{{"a/b", board}}, false},
		"dots":           {[]Mount{{"..", board}}, false},
		"a space":        {[]Mount{{"a b", board}}, false},
		"twice":          {[]Mount{{"a", board}, {"a", board}}, false},
		"no dashboard":   {[]Mount{{"a", nil}}, false},
	} {
		if _, err := NewStores(tt.mounts...); (err == nil) != tt.ok ||
			err != nil && !errors.Is(err, inspect.ErrInvalidOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
