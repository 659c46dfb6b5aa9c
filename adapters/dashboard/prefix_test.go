package dashboard

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/internal/tier"
)

func TestPrefixes(t *testing.T) {
	h := newHouse(t, Options{})
	mux := func(prefix, strip string) http.Handler {
		m := http.NewServeMux()
		m.Handle(prefix, http.StripPrefix(strip, h.board))
		return m
	}
	for name, c := range map[string]struct {
		h    http.Handler
		base string
	}{
		"at the root":            {h.board, "/"},
		"below a path":           {mux("/a/", "/a"), "/a/"},
		"below a path, stripped": {mux("/a/b/", "/a/b/"), "/a/b/"},
	} {
		t.Run(name, func(t *testing.T) { crawl(t, c.h, c.base) })
	}
	t.Run("behind a proxy that strips", func(t *testing.T) {
		open := newHouse(t, Options{API: httpapi.Options{Authorize: func(*http.Request, httpapi.Action) error {
			return nil
		}}})
		backend := httptest.NewServer(open.board)
		defer backend.Close()
		to, _ := url.Parse(backend.URL)
		proxy := httputil.NewSingleHostReverseProxy(to)
		m := http.NewServeMux()
		m.Handle("/ops/", http.StripPrefix("/ops", proxy))
		crawl(t, m, "/ops/")
	})
	w := answerOf(http.StripPrefix("/a/b", h.board), request(http.MethodGet, "/a/b?x=1", nil))
	if w.Code != http.StatusPermanentRedirect || w.Header().Get("Location") != "./b/?x=1" {
		t.Errorf("without the slash: status %d, to %q", w.Code, w.Header().Get("Location"))
	}
}

var links = regexp.MustCompile(`(?:href|src)="([^"]*)"`)

// crawl follows the links of pages, and the redirect of a form, all of which stay below the base.
func crawl(t *testing.T, handler http.Handler, base string) {
	t.Helper()
	seen, next := map[string]bool{}, []string{base}
	for len(next) > 0 && len(seen) < tier.Count(50, 200) {
		target := next[0]
		next = next[1:]
		if seen[target] {
			continue
		}
		seen[target] = true
		w := answerOf(handler, request(http.MethodGet, target, nil))
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", target, w.Code)
			continue
		}
		at, _ := url.Parse(target)
		for _, link := range links.FindAllStringSubmatch(w.Body.String(), -1) {
			to, err := at.Parse(strings.ReplaceAll(link[1], "&amp;", "&"))
			if err != nil || !strings.HasPrefix(to.Path, base) {
				t.Errorf("%s links to %s", target, link[1])
				continue
			}
			to.Fragment = ""
			next = append(next, to.String())
		}
	}
	if len(seen) < 8 {
		t.Errorf("there are only %v", seen)
	}
	w := answerOf(handler, request(http.MethodPost, base+"act", url.Values{"q": {"orders"}, "op": {"resume"}}))
	at, _ := url.Parse(base + "act")
	to, err := at.Parse(w.Header().Get("Location"))
	if err != nil || w.Code != http.StatusSeeOther || to.String() != base+"queue?did=resume&q=orders" {
		t.Errorf("a form: status %d, to %q", w.Code, w.Header().Get("Location"))
	}
}
