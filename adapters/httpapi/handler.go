package httpapi

import (
	"encoding/json"
	"errors"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// register makes the mux of the table.
func (a *API) register() {
	a.mux = http.NewServeMux()
	for _, r := range table() {
		if a.o.ReadOnly && r.action() {
			continue
		}
		a.routes = append(a.routes, r)
		a.mux.HandleFunc(r.method+" "+base+r.path, func(w http.ResponseWriter, q *http.Request) { a.serve(w, q, &r) })
	}
	a.document = json.RawMessage(document(a.routes, a.o.Authorize != nil))
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range security {
		w.Header().Set(name, value)
	}

	if p := a.guard(r); p != nil {
		writeProblem(w, r, p)
		return
	}

	r = rooted(r)
	if _, pattern := a.mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
		p, allowed := a.noRoute(r)
		if allowed != "" {
			w.Header().Set("Allow", allowed)
		}
		writeProblem(w, r, p)
		return
	}

	a.mux.ServeHTTP(w, r)
}

// rooted returns a request whose path begins with a slash. A StripPrefix whose prefix ends in a
// slash removes that slash.
func rooted(r *http.Request) *http.Request {
	if strings.HasPrefix(r.URL.Path, "/") {
		return r
	}
	copied, u := *r, *r.URL
	u.Path = "/" + u.Path
	if u.RawPath != "" {
		u.RawPath = "/" + u.RawPath
	}
	copied.URL = &u
	return &copied
}

// noRoute returns the problem of a path without a route, or of a route that lacks the request's
// method. In the latter case allowed lists its methods.
func (a *API) noRoute(r *http.Request) (p *service.Problem, allowed string) {
	var methods, headers []string
	for _, served := range [...]struct{ method, allowed string }{
		{http.MethodGet, "GET, HEAD"},
		{http.MethodPost, "POST"},
	} {
		other := *r
		other.Method = served.method
		if _, pattern := a.mux.Handler(&other); pattern != "" && path.Clean(r.URL.Path) == r.URL.Path {
			methods, headers = append(methods, served.method), append(headers, served.allowed)
		}
	}

	if len(methods) > 0 {
		return service.ProblemMethod.With("use %s", strings.Join(methods, " or ")), strings.Join(headers, ", ")
	}
	return service.ProblemNotFound.With("the routes are in %s/openapi.json; a read-only API has no actions", base), ""
}

// serve answers a request of a route.
func (a *API) serve(w http.ResponseWriter, r *http.Request, route *route) {
	queue := r.PathValue("queue")
	fail := func(err error) { writeProblem(w, r, a.service.ProblemOf(queue, err)) }

	format, err := accepted(r, route.rows)
	if err != nil {
		fail(err)
		return
	}

	in, err := a.input(w, r, route)
	if err != nil {
		fail(err)
		return
	}

	reply, err := route.run(r.Context(), a, a.caller(r), queue, in)
	if err != nil {
		fail(err)
		return
	}

	if err := a.answer(w, r, route, format, reply); err != nil {
		fail(err)
	}
}

// Door gives pages beside the API, such as those of package dashboard, access to the API's service.
// Their calls pass the API's guard, rights, redaction and bounds. Its type is internal to this
// module; pages of other modules use [API.Guard].
func (a *API) Door() service.Door {
	return service.Door{Service: a.service, Admit: func(r *http.Request) (*service.Caller, error) {
		if p := a.guard(r); p != nil {
			return nil, p
		}
		return a.caller(r), nil
	}}
}

// caller returns the service's caller for a request.
func (a *API) caller(r *http.Request) *service.Caller {
	c := &service.Caller{Service: a.service, Actor: func() inspect.Actor {
		actor := inspect.Actor{From: peerOf(r), Reason: r.Header.Get(reasonHeader)}
		if a.o.Actor != nil {
			actor.Name = a.o.Actor(r)
		}
		return actor
	}}
	if a.o.Authorize != nil {
		c.Authorize = func(of service.Action) error {
			return a.o.Authorize(r, Action{Verb(of.Verb), of.Queue, of.IDs, of.Bulk, of.Node})
		}
	}
	return c
}

// input reads the request's input for the route.
func (a *API) input(w http.ResponseWriter, r *http.Request, route *route) (any, error) {
	if route.query != nil {
		in := reflect.New(route.query)
		return in.Interface(), decodeQuery(r.URL.RawQuery, in.Elem())
	}
	if r.URL.RawQuery != "" {
		return nil, service.ProblemBadRequest.With("an action takes no query; send its parameters in the body")
	}

	in := reflect.New(route.body)
	body := http.MaxBytesReader(w, r.Body, a.o.MaxBodyBytes)
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(bodyTime)) // if the server can't, its own timeouts apply

	err := decodeBody(r.Header, body, in.Interface(), route.anyJSON)
	if err == nil {
		_ = deadline.SetReadDeadline(time.Time{}) // else the server would wait for the rest of the body
	}

	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return nil, a.tooLarge()
	}
	return in.Interface(), err
}
