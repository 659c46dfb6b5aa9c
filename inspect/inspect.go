package inspect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"runtime/debug"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/logs"
	"github.com/skeinq/skein/ports"
)

// What a caller can act on. Each comes wrapped with what is wrong; test with
// [errors.Is]. They match the errors of the same name of other packages.
var (
	// ErrUnknownQueue is a queue that no push and no server has declared in this
	// store.
	ErrUnknownQueue = ports.ErrUnknownQueue
	// ErrUnknownNode is a node that does not run, from Drain.
	ErrUnknownNode = ports.ErrUnknownNode
	// ErrInvalidID is an id that no job can have.
	ErrInvalidID = core.ErrInvalidID
	// ErrInvalidOptions is an inspector without a store, or options of a list or an
	// action that are out of range.
	ErrInvalidOptions = core.ErrInvalidOptions
	// ErrInvalidRequest is a shard that a queue doesn't have, or too much at once.
	ErrInvalidRequest = ports.ErrInvalidRequest
	// ErrUnusable is a store that answers and can't be used as it is set up, which waiting does not cure.
	ErrUnusable = ports.ErrUnusable
	// ErrQueueMismatch is a list [ByID] of a queue that was declared without IndexIDs.
	ErrQueueMismatch = ports.ErrQueueMismatch
	// ErrNotEmpty is a queue that can't be forgotten: it holds jobs or dead letters.
	ErrNotEmpty = ports.ErrNotEmpty
	// ErrLeaseHeld is a queue that can't be forgotten: a server works it.
	ErrLeaseHeld = ports.ErrLeaseHeld
)

// Store is what an [Inspector] needs of a store. Every [ports.ShardStore] has it.
type Store interface {
	ports.Registry
	ports.Inspector
	ports.Operator
	ports.Quarantine
	ports.Auditor
}

// Options are the options of an inspector. The zero value is ready.
type Options struct {
	// DecodeError turns the text of a stored error back into the original, where
	// the servers encode errors. It must be safe for concurrent use. nil shows
	// texts as they are stored.
	DecodeError func(stored string) string
	// Logger gets a record of each action that changes something, also of one that failed: who acted and why
	// ([WithActor]), what, on which, and how many were changed; [Inspector.Actions] has the same from the store. It also gets a record of a panic of the store, with its stack. nil is
	// [slog.Default].
	Logger *slog.Logger
}

// Inspector shows what is in a store and lets an operator act on it. Make it with
// [New]. It needs neither client nor server, and works for every queue of the
// store, whatever the type of its payloads: here they are bytes. It is safe for
// concurrent use. Times are by the store's clock.
//
// Lists are fetched page by page while they are ranged over, and each range
// begins anew. They are no snapshot: an element that doesn't change meanwhile
// comes exactly once, one that moves may come twice or not at all. An error comes
// as the last pair, with a zero element. Where shards can't be reached, a list has what others
// have, and then a *[PartialError].
//
// Actions on many entries work in bounded steps, each atomic for its shard. Those
// on named ids or payloads ignore what is not there, and do nothing at all, with
// [ErrInvalidID], if any id is invalid. Those on all of a kind end, also
// while servers are at work: they count at most as many entries as each shard
// held when they began. A step of unknown outcome is repeated a few times, so
// that entries which came meanwhile may be handled beyond those counted. When
// ctx ends, or the store keeps failing, an action returns what it has done so
// far, and the error; call it again to go on.
//
// Every method that names a queue returns [ErrUnknownQueue] for one that the store doesn't know, but for [Inspector.Actions].
// An error that doesn't match one of this package's is the store's. A panic of the store is an error as well, and in the log:
// what looks at a store, in whichever goroutine, does not end the process. Such a call is not repeated.
type Inspector struct {
	store Store
	views viewer
	log   *slog.Logger
	// panics says which panics of the store to log.
	panics *logs.Once
}

// New returns an inspector of a store. It doesn't contact the store, and never
// fails: with a nil store, every method returns [ErrInvalidOptions].
func New(store Store, options Options) *Inspector {
	if v := reflect.ValueOf(store); v.Kind() == reflect.Pointer && v.IsNil() {
		store = nil
	}
	return &Inspector{
		store: store, views: viewer{options.DecodeError}, log: logs.New(options.Logger), panics: logs.NewOnce(time.Minute, mostPanics),
	}
}

// Ping asks whether the store answers and can be used: its version, the format of what it holds, settings and rights. It
// writes nothing. It returns [ErrUnusable] for what no waiting cures.
func (i *Inspector) Ping(ctx context.Context) error {
	_, err := ask(i, func(s Store) (struct{}, error) { return struct{}{}, s.Ping(ctx) })
	return err
}

// Queues lists the queues of the store in order of name.
func (i *Inspector) Queues(ctx context.Context) ([]Queue, error) {
	queues, err := ask(i, func(s Store) ([]ports.Queue, error) { return s.Queues(ctx) })
	return convert(queues, queueOf), err
}

// Stats returns the sizes of the named queues, in the order given, or of all of
// them in order of name if none is named. Where shards can't be reached it returns what others
// have and a *[PartialError].
func (i *Inspector) Stats(ctx context.Context, queues ...string) ([]QueueStats, error) {
	if len(queues) == 0 {
		return i.allStats(ctx)
	}
	stats, err := ask(i, func(s Store) ([]ports.QueueStats, error) { return s.Stats(ctx, ports.StatsRequest{Queues: queues}) })
	if err != nil {
		return nil, err
	}
	return convert(stats, queueStatsOf), partial(unreachedOf(stats))
}

// mostForgotten is how many queues may be forgotten between the list of queues and what is asked of them.
const mostForgotten = 10

// allStats is Stats of all queues.
func (i *Inspector) allStats(ctx context.Context) (stats []QueueStats, err error) {
	for range mostForgotten {
		all, failed := i.Queues(ctx)
		if failed != nil || len(all) == 0 {
			return nil, failed
		}
		stats, err = i.Stats(ctx, convert(all, func(q *Queue) string { return q.Name })...)
		if !errors.Is(err, ErrUnknownQueue) {
			break
		}
	}
	return stats, err
}

// unreachedOf returns the shards that stats lack.
func unreachedOf(stats []ports.QueueStats) (unreached []core.Shard) {
	for at := range stats {
		unreached = append(unreached, stats[at].Unreached...)
	}
	return unreached
}

// HistoryOptions choose a part of a queue's history. The zero value is all of it, by minute.
type HistoryOptions struct {
	// From and To bound the starts of the minutes: From inclusive, To exclusive. The zero From is the
	// oldest there is, the zero To means no end.
	From, To time.Time
	// Step is how much time one element sums up: whole minutes, at most 24 hours. 0 is one minute. Elements
	// begin at multiples of Step since 1970 UTC; the minutes that From and To leave out are missing in
	// the first and last.
	Step time.Duration
}

// History lists the minutes of a queue, or steps of several minutes, in which something was counted, oldest
// first: how jobs ended, by all servers. The last 24 hours are kept. Servers report every few seconds, a third
// of ServerOptions.LeaseTTL, so the present minute lacks what they have not reported. A history whose
// store can't reach a part of it now comes with a *[PartialError]. It returns [ErrInvalidOptions] if Step is not of
// whole minutes, negative or longer than 24 hours.
func (i *Inspector) History(ctx context.Context, queue string, o HistoryOptions) ([]MinuteStats, error) {
	r := ports.HistoryRequest{Queue: queue, From: core.InstantOf(o.From), Step: o.Step}
	if !o.To.IsZero() {
		r.To = max(1, core.InstantOf(o.To)) // 0 means no end
	}
	if err := r.Validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalidOptions, err)
	}
	reply, err := ask(i, func(s Store) (ports.HistoryReply, error) { return s.History(ctx, r) })
	if err != nil {
		return nil, err
	}
	return convert(reply.Minutes, minuteStatsOf), partial(reply.Unreached)
}

// Find looks an id up in a queue: queued, claimed and in the morgue, with the first of its
// payloads, at most 1,000 of them and 8 MiB. PayloadCount is how many there are in each place, and
// [Inspector.Payloads] lists all of them. An id that is nowhere is no error. It returns
// [ErrInvalidID] if no job can have the id.
func (i *Inspector) Find(ctx context.Context, queue, id string) (Found, error) {
	return i.FindSome(ctx, queue, id, core.MaxTurnPayloads)
}

// FindSome is [Inspector.Find] with at most the given number of payloads of each place. 0 reads no
// payload.
func (i *Inspector) FindSome(ctx context.Context, queue, id string, payloads int) (Found, error) {
	r := ports.FindRequest{Queue: queue, ID: id, Payloads: payloads}
	stored, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
	if err != nil {
		return Found{}, err
	}
	return i.views.found(id, &stored), nil
}

// ask makes one call of the store. All calls go through it, so that an inspector
// without a store returns ErrInvalidOptions from each, and a store that panics an error.
func ask[R any](i *Inspector, call func(Store) (R, error)) (reply R, err error) {
	if i == nil || i.store == nil {
		return reply, fmt.Errorf("%w: the inspector has no store; give inspect.New one", ErrInvalidOptions)
	}
	defer func() {
		if v := recover(); v != nil {
			err = i.panicked(v)
		}
	}()
	return call(i.store)
}

// errStorePanicked is a call of the store that ended by a panic.
var errStorePanicked = errors.New("the store panicked, as the log says")

// mostPanics is of how many different panics in a minute the log has a record.
const mostPanics = 16

// panicked logs a panic of the store and returns it as an error. It is called by the function that recovers.
func (i *Inspector) panicked(v any) error {
	text := fmt.Sprint(v)
	if i.panics.Pass(time.Now(), text) {
		i.log.Error("the store panicked; what was asked of it is unknown", "error", text, "stack", string(debug.Stack()))
	}
	return fmt.Errorf("%w: %s", errStorePanicked, text)
}
