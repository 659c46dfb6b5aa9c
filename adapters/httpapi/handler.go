package httpapi

import (
	"context"
	"errors"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
)

// maxBulk is how many actions on all that match may be under way at once.
const maxBulk = 2

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
	a.document = document(a.routes)
}

// ServeHTTP implements [http.Handler].
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range security {
		w.Header().Set(name, value)
	}
	if p := a.guard(r); p != nil {
		p.write(w, r)
		return
	}
	r = rooted(r)
	if _, pattern := a.mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
		p, allowed := a.noRoute(r)
		if allowed != "" {
			w.Header().Set("Allow", allowed)
		}
		p.write(w, r)
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

// noRoute reports that the route does not exist, or which other methods it has.
func (a *API) noRoute(r *http.Request) (p *problem, allowed string) {
	for _, served := range [...]struct{ method, allowed string }{{http.MethodGet, "GET, HEAD"}, {http.MethodPost, "POST"}} {
		other := *r
		other.Method = served.method
		if _, pattern := a.mux.Handler(&other); pattern != "" && path.Clean(r.URL.Path) == r.URL.Path {
			return problemMethod.with("it is for %s", served.method), served.allowed
		}
	}
	return problemNotFound.with("the routes are in %s/openapi.json; a read-only API has no actions", base), ""
}

// serve answers a request of a route.
func (a *API) serve(w http.ResponseWriter, r *http.Request, route *route) {
	queue := r.PathValue("queue")
	fail := func(err error) { a.problemOf(queue, err).write(w, r) }
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
	action := Action{Verb: route.verb, Queue: queue}
	if in, ok := in.(about); ok {
		in.about(&action)
	}
	if a.o.Authorize != nil {
		if err := a.o.Authorize(r, action); errors.Is(err, ErrUnauthenticated) {
			fail(problemUnauthenticated.with("give them in the header Authorization, by HTTP basic authentication"))
			return
		} else if err != nil {
			fail(problemForbidden.with("%s is not allowed here", action.Verb))
			return
		}
	}
	reply, err := a.run(r, route, action, in)
	if err != nil {
		fail(err)
		return
	}
	if err := a.answer(w, r, route, format, reply); err != nil {
		fail(err)
	}
}

// run calls the inspector, within the route's time and as the request's actor.
func (a *API) run(r *http.Request, route *route, action Action, in any) (any, error) {
	if action.Bulk {
		select {
		case a.bulk <- struct{}{}:
			defer func() { <-a.bulk }()
		default:
			return nil, problemBusy.with("%d are at most; try again when one is done", maxBulk)
		}
	}
	ctx, end := context.WithTimeout(r.Context(), route.time)
	defer end()
	if route.action() {
		actor := inspect.Actor{From: peerOf(r), Reason: r.Header.Get(reasonHeader)}
		if a.o.Actor != nil {
			actor.Name = a.o.Actor(r)
		}
		ctx = inspect.WithActor(ctx, actor)
		defer a.snapshots.forget()
	}
	return route.run(&call{API: a, ctx: ctx, queue: action.Queue}, in)
}

// input reads the request's input for the route.
func (a *API) input(w http.ResponseWriter, r *http.Request, route *route) (any, error) {
	if route.query != nil {
		in := reflect.New(route.query)
		return in.Interface(), decodeQuery(r.URL.RawQuery, in.Elem())
	}
	if r.URL.RawQuery != "" {
		return nil, problemBadRequest.with("an action takes no query; put it into the body")
	}
	in := reflect.New(route.body)
	body := http.MaxBytesReader(w, r.Body, a.o.MaxBodyBytes)
	deadline := http.NewResponseController(w)
	_ = deadline.SetReadDeadline(time.Now().Add(bodyTime)) // if the server can't, its own timeouts apply
	err := decodeBody(r.Header, body, in.Interface())
	if err == nil {
		_ = deadline.SetReadDeadline(time.Time{}) // else the server would wait for the rest of the body
	}
	if large := new(http.MaxBytesError); errors.As(err, &large) {
		return nil, a.tooLarge()
	}
	return in.Interface(), err
}
