package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"time"
)

// base is the beginning of all routes.
const base = "/api/v1"

// How long a request may take. The context of its calls to the store ends then.
const (
	lookTime    = 5 * time.Second
	actTime     = 10 * time.Second
	recountTime = 10 * time.Minute
	// bodyTime is how long a client may take to send a body.
	bodyTime = 5 * time.Second
)

// route is a row of the table from which the mux, rights, OpenAPI document, reference and tests
// are made.
type route struct {
	method, path string // path is below base
	verb         Verb
	summary      string
	// query and body are the input in the request's URL and its body, and reply is the answer. nil
	// means that there is none.
	query, body, reply reflect.Type
	// rows is whether the reply is a list, which is also available as JSON lines and CSV. polled is
	// whether it has an ETag.
	rows, polled bool
	time         time.Duration
	run          func(*call, any) (any, error)
}

// action reports whether the route changes something.
func (r *route) action() bool { return r.method == http.MethodPost }

// call is a request under way.
type call struct {
	*API
	ctx   context.Context
	queue string
}

// about is what the rights get to know of a request beside its route.
type about interface{ about(*Action) }

// look is a route that changes nothing.
func look[Q, R any](path, summary string, run func(*call, *Q) (*R, error)) route {
	r := route{
		method: http.MethodGet, path: path, verb: VerbView, summary: summary, time: lookTime,
		query: reflect.TypeFor[Q](), reply: reflect.TypeFor[R](),
		run: func(c *call, in any) (any, error) { return run(c, in.(*Q)) },
	}
	_, r.rows = reflect.TypeFor[*R]().MethodByName("Rows")
	return r
}

// polled is a route that a page requests again and again.
func polled(r route) route {
	r.polled = true
	return r
}

// act is a route that changes something.
func act[B, R any](path string, verb Verb, summary string, run func(*call, *B) (*R, error)) route {
	return route{
		method: http.MethodPost, path: path, verb: verb, summary: summary, time: actTime,
		body: reflect.TypeFor[B](), reply: reflect.TypeFor[R](),
		run: func(c *call, in any) (any, error) { return run(c, in.(*B)) },
	}
}

// slow is a route whose time grows with the queue.
func slow(r route) route {
	r.time = recountTime
	return r
}

// table returns all routes.
func table() []route {
	return append([]route{
		polled(look("/stats", "Sizes and lag of all queues, or of one", (*call).stats)),
		polled(look("/queues", "The queues", (*call).queues)),
		polled(look("/queues/{queue}", "Sizes and lag of a queue and of each of its shards", (*call).queueStats)),
		polled(look("/queues/{queue}/history", "What became of a queue's jobs, by minute or by several", (*call).history)),
		polled(look("/queues/{queue}/jobs", "The queued jobs", (*call).jobs)),
		polled(look("/queues/{queue}/claimed", "The jobs that servers have claimed", (*call).claimed)),
		polled(look("/queues/{queue}/morgue", "The dead letters", (*call).morgue)),
		polled(look("/queues/{queue}/groups", "How the dead letters are spread over errors", (*call).groups)),
		polled(look("/queues/{queue}/quarantine", "The records that can't be read", (*call).quarantine)),
		polled(look("/queues/{queue}/payloads", "The payloads of an id, lowest score first", (*call).payloadsOf)),
		polled(look("/find", "What queues hold for an id", (*call).find)),
		polled(look("/why", "Why the job of an id does not run", (*call).why)),
		polled(look("/nodes", "The servers, also those that went within an hour", (*call).nodes)),
		polled(look("/audit", "What operators did, the newest action first: the last 1,000 of all queues", (*call).audit)),
		polled(look("/checks", "How the store's servers are", (*call).checks)),
		polled(look("/openapi.json", "This API as an OpenAPI 3.1 document", (*call).openAPI)),
	}, actions()...)
}
