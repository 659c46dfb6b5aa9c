package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/skeinq/skein/inspect"
)

// maxBulk is how many actions on all that match may run at once.
const maxBulk = 2

// serviceOptions are the options of a service. The zero value redacts nothing.
type serviceOptions struct {
	// RedactPayload returns what is shown of a payload or of a quarantined record. It may write to
	// data, which is a copy. nil shows all. All hooks must be safe for concurrent use.
	RedactPayload func(queue, id string, data []byte) []byte
	// RedactError returns what is shown of an error text. Queue and id may be empty. nil shows all.
	RedactError func(queue, id, text string) string
	// RedactID returns what is shown of an id. nil shows ids.
	RedactID func(queue, id string) string
	// CursorKey encrypts cursors, checkpoints and keys if RedactID or RedactError is set. It has 32
	// bytes; nil is drawn at random.
	CursorKey []byte
}

// service looks and acts for callers. All that its replies show has passed the redaction of its
// options, and all that it does has passed the rights of the caller. It is safe for concurrent use.
type service struct {
	inspector *inspect.Inspector
	o         serviceOptions
	// bulk bounds how many actions on all that match run at once.
	bulk      chan struct{}
	snapshots snapshots
	// sealer encrypts what must not be read in cursors and groups; nil if all may be.
	sealer *sealer
}

// newService returns the service of an inspector. It does not contact the store. A CursorKey of
// another size than 32 bytes is an error.
func newService(inspector *inspect.Inspector, o serviceOptions) (*service, error) {
	s := &service{inspector: inspector, o: o, bulk: make(chan struct{}, maxBulk)}
	return s, s.seal()
}

// asked is what a caller asks for, as its rights see it.
type asked struct {
	// Verb is the kind of look or action: view, view-payload, pause and so on.
	Verb string
	// Queue is the queue that it is about; empty is all queues, or none.
	Queue string
	// IDs are the ids that it names, as the caller wrote them.
	IDs []string
	// Bulk reports whether it acts on all that match, not on named ids. A dry run is one too.
	Bulk bool
	// Node is the server that is drained, by its owner or name.
	Node string
}

// The verbs of looks.
const (
	verbView        = "view"
	verbViewPayload = "view-payload"
)

// errUnauthenticated is what Caller.Authorize returns, wrapped or not, for a caller without valid
// credentials.
var errUnauthenticated = errors.New("not authenticated")

// caller is who asks the service.
type caller struct {
	// Authorize refuses what is asked for by an error, whose text is not shown. nil allows all.
	Authorize func(asked) error
	// Actor returns who acts, for the audit and the log. It is called for actions only.
	Actor func() inspect.Actor
}

// may returns the problem of a caller that may not have what it asks for, nil if it may.
func (w *caller) may(a asked) error {
	if w.Authorize == nil {
		return nil
	}
	if err := w.Authorize(a); errors.Is(err, errUnauthenticated) {
		return problemUnauthenticated.with("give them in the header Authorization, by HTTP basic authentication")
	} else if err != nil {
		return problemForbidden.with("%s is not allowed here", a.Verb)
	}
	return nil
}

// call is a request under way.
type call struct {
	*service
	ctx   context.Context
	queue string
}

// about is what a request tells the rights beyond its operation.
type about interface{ about(*asked) }

// How long an operation may take: the store is asked with a context that ends then.
const (
	lookTime    = 5 * time.Second
	actTime     = 10 * time.Second
	recountTime = 10 * time.Minute
)

// op is an operation of the service: a look or an action, with input I and reply R.
type op[I, R any] struct {
	// Verb is what the rights call it, unless its input is of another right.
	Verb string
	// Acts reports whether it changes something.
	Acts bool
	// Time is how long it may take.
	Time time.Duration
	run  func(*call, *I) (*R, error)
}

func look[I, R any](run func(*call, *I) (*R, error)) op[I, R] {
	return op[I, R]{verbView, false, lookTime, run}
}

func act[I, R any](verb string, run func(*call, *I) (*R, error)) op[I, R] {
	return op[I, R]{verb, true, actTime, run}
}

// slow is an operation that may take as long as the queue is large.
func slow[I, R any](o op[I, R]) op[I, R] {
	o.Time = recountTime
	return o
}

// asks returns what the rights are asked for an input.
func (o op[I, R]) asks(queue string, in *I) asked {
	a := asked{Verb: o.Verb, Queue: queue}
	if in, ok := any(in).(about); ok {
		in.about(&a)
	}
	return a
}

// do does it for a caller, about a queue or, without one, about what the input names. An error is
// always a *problem.
func (o op[I, R]) do(ctx context.Context, s *service, who *caller, queue string, in *I) (*R, error) {
	a := o.asks(queue, in)
	err := who.may(a)
	var reply *R
	if err == nil {
		reply, err = o.within(ctx, s, who, &a, in)
	}
	if err != nil {
		return nil, s.problemOf(queue, err)
	}
	return reply, nil
}

// within runs it within its time and bounds, as the caller's actor.
func (o op[I, R]) within(ctx context.Context, s *service, who *caller, a *asked, in *I) (*R, error) {
	if a.Bulk {
		select {
		case s.bulk <- struct{}{}:
			defer func() { <-s.bulk }()
		default:
			return nil, problemBusy.with("%d are at most; try again when one is done", maxBulk)
		}
	}
	ctx, end := context.WithTimeout(ctx, o.Time)
	defer end()
	if o.Acts {
		ctx = inspect.WithActor(ctx, who.Actor())
		defer s.snapshots.forget()
	}
	return o.run(&call{s, ctx, a.Queue}, in)
}

// nothing is the empty object.
func (c *call) nothing(*noQuery) (*struct{}, error) { return &struct{}{}, nil }
