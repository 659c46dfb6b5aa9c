package httpapi

import (
	"encoding/json"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/skeinq/skein/internal/service"
)

// security are the headers of every answer. Answers are data of one moment and of one user, so they
// must not be stored, framed, sniffed or embedded.
var security = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
}

// Guard returns a handler for pages beside the API. It refuses the requests that the API refuses
// regardless of the route: with a foreign host, from another site's page if they act, from another
// machine without Options.Authorize, too large ones, and a GET with a body. The responses are the
// API's problems. For all other requests it calls next. It does not call Options.Authorize.
func (a *API) Guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if p := a.guard(r); p != nil {
			writeProblem(w, r, p)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// guard returns the problem of a request that is refused whatever its route is, or nil. It does not
// read the body.
func (a *API) guard(r *http.Request) *service.Problem {
	if a.hosts != nil && !a.hosts[hostName(r.Host)] {
		if a.o.Authorize == nil && len(a.o.Hosts) == 0 {
			return service.ProblemForeignHost.With("without Options.Authorize, only requests to localhost, " +
				"127.0.0.1 and ::1 are served; set Authorize to serve other names")
		}
		return service.ProblemForeignHost.With("requests to this host name are not served; add it to Options.Hosts")
	}

	if err := a.origins.Check(r); err != nil {
		return service.ProblemCrossOrigin.With("the request comes from a page of another site. " +
			"If it is your own page behind a proxy that rewrites Host, add the page's origin to Options.TrustedOrigins")
	}

	if headerBytes(r) > a.o.MaxHeaderBytes {
		return service.ProblemHeaderTooLarge.With("the limit is %d bytes; name fewer ids, or name them in a body",
			a.o.MaxHeaderBytes)
	}

	if a.o.Authorize == nil && !fromThisMachine(r) {
		return service.ProblemClosed.With("without Options.Authorize, only requests from the same machine that no " +
			"proxy has forwarded are served; set Authorize to serve others")
	}

	if r.ContentLength > a.o.MaxBodyBytes {
		return a.tooLarge()
	}
	if r.ContentLength != 0 && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		return service.ProblemBadRequest.With("a %s takes no body", r.Method)
	}
	return nil
}

func (a *API) tooLarge() *service.Problem {
	return service.ProblemBodyTooLarge.With("the limit is %d bytes; name fewer ids in a request", a.o.MaxBodyBytes)
}

func headerBytes(r *http.Request) int {
	n := len(r.RequestURI)
	if n == 0 {
		n = len(r.URL.String())
	}
	for name, values := range r.Header {
		for _, value := range values {
			n += len(name) + len(value)
		}
	}
	return n
}

// forwarding are headers that a proxy adds. They are never trusted. But if one is present there is
// a proxy, and the peer's address does not identify the client.
var forwarding = []string{"Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip"}

func fromThisMachine(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || slices.Contains(forwarding, name) {
			return false
		}
	}
	peer, err := netip.ParseAddr(peerOf(r))
	return err == nil && peer.Unmap().IsLoopback()
}

// peerOf returns the address that a request comes from, without port.
func peerOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// writeProblem answers with a problem.
func writeProblem(w http.ResponseWriter, r *http.Request, p *service.Problem) {
	body, err := json.Marshal(p)
	if err != nil {
		http.Error(w, p.Title, p.Status)
		return
	}

	h := w.Header()
	if p.Retry > 0 {
		h.Set("Retry-After", strconv.Itoa(int(p.Retry.Seconds())))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", Challenge)
	}

	h.Set("Content-Type", "application/problem+json")
	respond(w, r, p.Status, body)
}
