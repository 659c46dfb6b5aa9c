package dashboard

import (
	"fmt"
	"net/http"
	"path"
	"strings"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// Options are the options of a [Dashboard]. The zero value serves only the same machine, with all
// actions.
type Options struct {
	// API are the options of the API inside the dashboard. Only they decide who may do what: its
	// Authorize, ReadOnly, Hosts, TrustedOrigins, Redact hooks and Actor apply to pages too.
	// Authorize is called with the request for the page, once for each of the page's reads and
	// actions. The request has the page's method and path, so decide by the Action.
	API httpapi.Options
	// Title is the name of this store in the bar of each page, such as "production, Redis". Empty
	// means its name in [Stores], or Skein.
	Title string
}

// Dashboard is an [http.Handler] of the pages and the API. Make it with [New]. It is safe for
// concurrent use. It runs no goroutine between requests: it reads the store only during requests.
type Dashboard struct {
	o      Options
	api    *httpapi.API
	door   service.Door
	mux    *http.ServeMux
	pages  pages
	looker *looker
	sent   sent
}

// New returns the dashboard of an inspector. It doesn't contact the store.
//
// It returns the errors of [httpapi.New].
func New(inspector *inspect.Inspector, o Options) (*Dashboard, error) {
	api, err := httpapi.New(inspector, o.API)
	if err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}

	d := &Dashboard{o: o, api: api, door: api.Door(), mux: http.NewServeMux()}
	d.looker = newLooker(inspector, d.door.Service)
	if d.pages, err = parsedPages(); err != nil {
		return nil, fmt.Errorf("dashboard: %w", err)
	}

	for _, r := range table() {
		if r.acts && o.API.ReadOnly {
			continue
		}
		d.mux.HandleFunc(r.method+" /"+r.path, func(w http.ResponseWriter, q *http.Request) { d.serve(w, q, &r) })
	}

	d.mux.HandleFunc("GET /"+assetDir, serveAsset)
	return d, nil
}

// security are the headers of every page. Unlike the API's, the referrer policy lets pages send
// their own origin to themselves. Without it browsers send forms with the origin null, and an old
// browser's form could not be distinguished from another site's.
var security = map[string]string{
	"Cache-Control": "no-store",
	"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " +
		"connect-src 'self'; form-action 'self'; " +
		"frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'",
	"Cross-Origin-Opener-Policy":   "same-origin",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Permissions-Policy":           "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
	"Referrer-Policy":              "same-origin",
	"X-Content-Type-Options":       "nosniff",
}

// ServeHTTP implements [http.Handler].
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(strings.TrimPrefix(r.URL.Path, "/"), "api/") {
		d.api.ServeHTTP(w, r)
		return
	}

	for name, value := range security {
		w.Header().Set(name, value)
	}

	if to := slashed(r); to != "" {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}

	r = rooted(r)
	c := &call{Dashboard: d, w: w, r: r}
	var err error
	if c.who, err = d.door.Admit(r); err != nil {
		c.fail(err)
		return
	}

	if _, pattern := d.mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path ||
		pattern == "GET /" && r.URL.Path != "/" {
		c.fail(newProblem(http.StatusNotFound, "There is no such page", "A read-only dashboard has no actions."))
		return
	}

	d.mux.ServeHTTP(w, r)
}

// slashed returns the redirect for a prefix without the slash at its end, since all links of a
// page are relative to it. It is empty for other paths.
func slashed(r *http.Request) string {
	if r.URL.Path != "" || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return ""
	}
	asked, query, _ := strings.Cut(r.RequestURI, "?")
	if asked == "" || strings.HasSuffix(asked, "/") {
		return ""
	}
	to := "./" + asked[strings.LastIndex(asked, "/")+1:] + "/"
	if query != "" {
		to += "?" + query
	}
	return to
}

// rooted returns a request whose path begins with a slash. A StripPrefix whose prefix ends in a
// slash removes that slash.
func rooted(r *http.Request) *http.Request {
	if strings.HasPrefix(r.URL.Path, "/") {
		return r
	}
	copied, u := *r, *r.URL
	u.Path, u.RawPath = "/"+u.Path, ""
	copied.URL = &u
	return &copied
}
