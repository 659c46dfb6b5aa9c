package service

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/scores"
)

// MaxBulk is the maximum number of bulk actions, those on all entries that match, that run at once.
const MaxBulk = 2

// Options are the options of a service. The zero value redacts nothing.
type Options struct {
	// RedactPayload returns the bytes to show of a payload, or of a record that was set aside. data
	// is a copy that it may overwrite. nil shows everything. All hooks must be safe for concurrent
	// use.
	RedactPayload func(queue, id string, data []byte) []byte
	// RedactError returns the text to show of an error. queue and id may be empty. nil shows
	// everything.
	RedactError func(queue, id, text string) string
	// RedactID returns the text to show of an id. If it is set, no tags are shown. nil shows ids.
	RedactID func(queue, id string) string
	// CursorKey encrypts cursors, checkpoints and keys if RedactID or RedactError is set. It has 32
	// bytes; nil means a random key.
	CursorKey []byte
	// ReadOnly refuses every operation that changes something.
	ReadOnly bool
	// MaxPayloadBytes is the maximum size of a payload that is pushed. 0 means
	// core.DefaultMaxPayloadBytes.
	MaxPayloadBytes int
}

// Service reads and changes a store for callers. It checks the caller's rights before each
// operation, and applies the redaction of its options to each reply. It is safe for concurrent use.
type Service struct {
	inspector *inspect.Inspector
	o         Options
	// bulk holds a value for each bulk action under way.
	bulk      chan struct{}
	snapshots snapshots
	// scores are the default scores of pushes.
	scores scores.Source
	// sealer encrypts cursors, checkpoints, keys and groups, which have ids and texts that clients
	// may not read. It is nil if they may read all.
	sealer *sealer
}

// New returns the service of an inspector. It doesn't contact the store. It returns an error for a
// CursorKey with a length other than 32 bytes.
func New(inspector *inspect.Inspector, o Options) (*Service, error) {
	o.MaxPayloadBytes = cmp.Or(o.MaxPayloadBytes, core.DefaultMaxPayloadBytes)
	s := &Service{inspector: inspector, o: o, bulk: make(chan struct{}, MaxBulk)}
	return s, s.seal()
}

// Action is the action that a caller asks for. Caller.Authorize permits or refuses it.
type Action struct {
	// Verb is the kind of the action: view, view-payload, pause and so on.
	Verb string
	// Queue is the name of the queue. It is empty for actions on all queues, and for those without
	// a queue.
	Queue string
	// IDs are the ids that the caller names, as the caller wrote them.
	IDs []string
	// Bulk is true for an action on all entries that match, instead of named ids. That includes dry
	// runs, which change nothing.
	Bulk bool
	// Node is the server to drain, by its owner or name.
	Node string
}

// The verbs of operations that change nothing.
const (
	verbView        = "view"
	verbViewPayload = "view-payload"
)

// ErrUnauthenticated reports a caller without valid credentials. Caller.Authorize returns it,
// wrapped or not.
var ErrUnauthenticated = errors.New("not authenticated")

// Caller is the origin of a request to a service, with its rights.
type Caller struct {
	// Service is the requested service.
	Service *Service
	// Authorize returns an error to refuse an action. The text of the error is not shown. nil
	// allows all.
	Authorize func(Action) error
	// Actor returns the user who acts, for the audit and the log. It is called only for actions,
	// and must not be nil for them.
	Actor func() inspect.Actor
}

// Door gives pages beside the API access to the API's service.
type Door struct {
	Service *Service
	// Admit returns the caller of a request. It returns a *Problem for a request that is refused
	// regardless of its action: with a foreign host, from another site's page, or from another
	// machine without Options.Authorize.
	Admit func(*http.Request) (*Caller, error)
}

// May returns nil if the caller may take the action, and else the problem that refuses it.
func (w *Caller) May(a Action) error {
	if w.Authorize == nil {
		return nil
	}
	if err := w.Authorize(a); errors.Is(err, ErrUnauthenticated) {
		return problemUnauthenticated.With("send the header Authorization: " +
			"a name and a password by HTTP basic authentication, or a token as Bearer, as this server takes them")
	} else if err != nil {
		return problemForbidden.With("%s is not allowed here", a.Verb)
	}
	return nil
}

// forbidden reports whether an error of May is about the rights of a known caller.
func forbidden(err error) bool {
	var p *Problem
	return errors.As(err, &p) && p.Name == problemForbidden.Name
}

// call is a request under way.
type call struct {
	*Service
	ctx   context.Context
	queue string
	who   *Caller
	// refused is why the caller may not view all queues, for an operation that narrows.
	refused error
}

// about is an input that adds to the Action of its operation, for the rights.
type about interface{ about(*Action) }

// The time limits of operations. When one is over, the context of the operation's calls to the
// store ends.
const (
	LookTime    = 5 * time.Second
	actTime     = 10 * time.Second
	recountTime = 10 * time.Minute
)

// Op is an operation of the service: it reads or it acts, with input I and reply R.
type Op[I, R any] struct {
	// Verb is the verb of its Action, unless the input changes it.
	Verb string
	// Acts is true if the operation changes something.
	Acts bool
	// Time is how long the operation may take.
	Time time.Duration
	run  func(*call, *I) (*R, error)
	// routine is true for an operation of programs, which may come many times a second: it is no action
	// of an operator, and statistics are not read anew after it.
	routine bool
	// narrows is true if the operation on all queues shows a caller without the right to all of them
	// those that the caller may view.
	narrows bool
}

func look[I, R any](run func(*call, *I) (*R, error)) Op[I, R] {
	return Op[I, R]{Verb: verbView, Time: LookTime, run: run}
}

func act[I, R any](verb string, run func(*call, *I) (*R, error)) Op[I, R] {
	return Op[I, R]{Verb: verb, Acts: true, Time: actTime, run: run}
}

// narrowed returns the operation for callers who need not have the right to all queues.
func narrowed[I, R any](o Op[I, R]) Op[I, R] {
	o.narrows = true
	return o
}

// routine returns an operation of programs that is no action of an operator.
func routine[I, R any](o Op[I, R]) Op[I, R] {
	o.routine = true
	return o
}

// slow returns the operation with the longer time limit of operations whose duration grows with the
// queue.
func slow[I, R any](o Op[I, R]) Op[I, R] {
	o.Time = recountTime
	return o
}

// Asks returns the Action of the operation with an input. The caller's rights permit or refuse it.
func (o Op[I, R]) Asks(queue string, in *I) Action {
	a := Action{Verb: o.Verb, Queue: queue}
	if in, ok := any(in).(about); ok {
		in.about(&a)
	}
	return a
}

// targeted is the input of an action that also changes another queue, on which the caller needs the
// same right. check refuses an input without that queue.
type targeted interface {
	target() string
	check() error
}

// preview is the input of an action that may be a dry run.
type preview interface{ isPreview() bool }

// Do runs the operation for a caller, on the given queue. The queue is empty if the input names
// what to act on. An error is always a *Problem.
func (o Op[I, R]) Do(ctx context.Context, who *Caller, queue string, in *I) (*R, error) {
	a := o.Asks(queue, in)
	err := who.May(a)
	var refused error
	if o.narrows && a.Queue == "" && forbidden(err) {
		refused, err = err, nil
	}
	if t, ok := any(in).(targeted); ok && err == nil {
		if err = t.check(); err == nil {
			other := a
			other.Queue = t.target()
			err = who.May(other)
		}
	}

	if o.Acts && who.Service.o.ReadOnly {
		err = problemForbidden.With("%s is not allowed here: the API is read-only", a.Verb)
	}

	var reply *R
	if err == nil {
		reply, err = o.within(ctx, who, &a, in, refused)
	}
	if err != nil {
		return nil, who.Service.ProblemOf(queue, err)
	}
	return reply, nil
}

// within runs the operation within its time and bounds, as the caller's actor. refused is why the
// caller may not view all queues, for an operation that narrows.
func (o Op[I, R]) within(ctx context.Context, who *Caller, a *Action, in *I, refused error) (*R, error) {
	s := who.Service
	if a.Bulk {
		select {
		case s.bulk <- struct{}{}:
			defer func() { <-s.bulk }()
		default:
			return nil, problemBusy.With("at most %d run at once; try again when one has ended", MaxBulk)
		}
	}

	ctx, end := context.WithTimeout(ctx, o.Time)
	defer end()

	if o.Acts && !o.routine {
		ctx = inspect.WithActor(ctx, who.Actor())
		if p, ok := any(in).(preview); !ok || !p.isPreview() {
			defer s.snapshots.forget()
		}
	}

	return o.run(&call{s, ctx, a.Queue, who, refused}, in)
}

// nothing is the empty object.
func (c *call) nothing(*NoQuery) (*struct{}, error) { return &struct{}{}, nil }
