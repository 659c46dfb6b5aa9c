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

// Errors that a caller can act on. Each is returned wrapped, with the details; test with
// [errors.Is]. They match the errors of the same name in other packages.
var (
	// ErrUnknownQueue reports a queue that no push and no server has declared in this store, or
	// that was forgotten.
	ErrUnknownQueue = ports.ErrUnknownQueue
	// ErrUnknownNode reports a server that does not run. [Inspector.Drain] returns it.
	ErrUnknownNode = ports.ErrUnknownNode
	// ErrInvalidID reports an id that no job can have.
	ErrInvalidID = core.ErrInvalidID
	// ErrInvalidOptions reports an inspector without a store, or invalid options or arguments of a
	// list or an action.
	ErrInvalidOptions = core.ErrInvalidOptions
	// ErrInvalidRequest reports a shard that the queue doesn't have, a request for too many
	// entries, or an id that is named twice.
	ErrInvalidRequest = ports.ErrInvalidRequest
	// ErrUnusable reports a store that answers but can't be used as it is configured. Waiting does
	// not help.
	ErrUnusable = ports.ErrUnusable
	// ErrQueueMismatch reports a list [ByID] of a queue that was declared without IndexIDs.
	ErrQueueMismatch = ports.ErrQueueMismatch
	// ErrTooManyTracked reports a queue with [MaxTracked] tracked ids. Untrack one of them before
	// another id is tracked.
	ErrTooManyTracked = ports.ErrTooManyTracked
	// ErrNotEmpty reports a queue that can't be forgotten because it holds jobs, dead letters or
	// records that were set aside ([Inspector.Quarantined]).
	ErrNotEmpty = ports.ErrNotEmpty
	// ErrLeaseHeld reports a queue that can't be forgotten because a server has leased a shard of
	// it.
	ErrLeaseHeld = ports.ErrLeaseHeld
)

// Store is the part of a store that an [Inspector] needs. Every [ports.ShardStore] implements it.
type Store interface {
	ports.Registry
	ports.Inspector
	ports.Operator
	ports.Quarantine
	ports.Auditor
	ports.Tracker
}

// Options are the options of an inspector. The zero value is ready.
type Options struct {
	// DecodeError decodes the text of a stored error, if the servers encode errors with an
	// ErrorCodec. It must be safe for concurrent use. nil means that texts are returned as they are
	// stored.
	DecodeError func(stored string) string
	// Logger receives a record of each action that changes something, including failed ones: the
	// actor and the reason ([WithActor]), the action, its target, and the number of changed
	// entries. [Inspector.Actions] returns the same facts from the store. Logger also receives a
	// record of a panic of the store, with its stack. nil means [slog.Default].
	Logger *slog.Logger
}

// Inspector reads and changes the content of a store. Make it with [New]. It needs neither a client
// nor a server, and works for every queue of the store. Payloads are bytes here, whatever their
// type is. It is safe for concurrent use. Times are by the store's clock.
//
// A list is fetched page by page while it is ranged over. Each range starts from the beginning. A
// list is not a snapshot. An element that doesn't change meanwhile appears exactly once. An element
// that moves within the list may appear twice or not at all. If there is an error, it is in the
// last pair, with a zero element. If shards can't be reached, a list has the elements of the other
// shards, and then a *[PartialError].
//
// Actions on many entries work in bounded steps, each atomic for its shard. Actions on named ids or
// payloads ignore those that do not exist. If any id is invalid, they do nothing and return
// [ErrInvalidID]. Actions on all entries of a kind end, even while servers are working: they handle
// at most as many entries as each shard held when they began. A step of unknown outcome is repeated
// a few times, so entries that arrive meanwhile may be handled in addition to that number. When ctx
// ends, or the store keeps failing, an action returns its Result so far together with the error.
// Call it again to continue.
//
// Every method with a queue's name returns [ErrUnknownQueue] if the store doesn't have the queue,
// except [Inspector.Actions]. An error that doesn't match one of this package's errors is the
// store's. If the store panics in a call of an Inspector, the panic is logged and returned as an
// error; it does not end the process. Such a call is not repeated. An Inspector can't catch the
// panic of a goroutine that the store itself has started.
type Inspector struct {
	store Store
	views viewer
	log   *slog.Logger
	// panics decides which panics of the store to log.
	panics *logs.Once
}

// New returns an inspector of a store. It doesn't contact the store and returns no error. If the
// store is nil, every method returns [ErrInvalidOptions].
func New(store Store, options Options) *Inspector {
	if v := reflect.ValueOf(store); v.Kind() == reflect.Pointer && v.IsNil() {
		store = nil
	}
	return &Inspector{
		store: store, views: viewer{options.DecodeError}, log: logs.New(options.Logger), panics: logs.NewOnce(time.Minute, mostPanics),
	}
}

// Ping checks whether the store answers and can be used: its version, the format of its content,
// its settings and rights. It writes nothing. It returns [ErrUnusable] for a state that does not
// end by waiting.
func (i *Inspector) Ping(ctx context.Context) error {
	_, err := ask(i, func(s Store) (struct{}, error) { return struct{}{}, s.Ping(ctx) })
	return err
}

// Queues lists the queues of the store in order of name.
func (i *Inspector) Queues(ctx context.Context) ([]Queue, error) {
	queues, err := ask(i, func(s Store) ([]ports.Queue, error) { return s.Queues(ctx) })
	return convert(queues, queueOf), err
}

// Stats returns the sizes of the named queues, in the given order. Without names it returns the
// sizes of all queues, in order of name. If shards can't be reached, it returns the sizes of the
// other shards and a *[PartialError].
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

// mostForgotten is the number of tries of allStats: a queue of the list may be forgotten before its
// sizes are read.
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

// HistoryOptions select a part of a queue's history. The zero value selects the whole history, by
// minute.
type HistoryOptions struct {
	// From and To bound the starts of the minutes: From is inclusive, To is exclusive. The zero
	// From means the oldest minute, the zero To means no end.
	From, To time.Time
	// Step is the time that one element sums up: whole minutes, at most 24 hours. 0 means one
	// minute. Elements begin at multiples of Step since 1970 UTC. The first and the last element
	// lack the minutes that From and To leave out.
	Step time.Duration
}

// History lists statistics of a queue over all servers, by minute or by step, oldest first: how
// jobs ended, and how long they waited and ran. Minutes in which nothing was counted are left out.
// The store keeps the last 24 hours. A server reports its counts after each third of
// ServerOptions.LeaseTTL, usually every few seconds. So the counts of the last seconds may be
// missing. If a part of the history can't be reached, the rest comes with a *[PartialError].
// History returns [ErrInvalidOptions] if Step is not of whole minutes, negative or longer than 24
// hours.
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

// Find returns everything that a queue holds for an id: the queued job, the claimed job and the
// dead letter, with the first of their payloads, together at most 1,000 payloads and 8 MiB.
// PayloadCount is the number of payloads in each place, and [Inspector.Payloads] lists all of them.
// If the queue holds nothing for the id, Find returns no error. It returns [ErrInvalidID] if no job
// can have the id.
func (i *Inspector) Find(ctx context.Context, queue, id string) (Found, error) {
	return i.FindSome(ctx, queue, id, core.MaxTurnPayloads)
}

// FindSome is [Inspector.Find] with at most the given number of payloads of each place. 0 means no
// payload.
func (i *Inspector) FindSome(ctx context.Context, queue, id string, payloads int) (Found, error) {
	r := ports.FindRequest{Queue: queue, ID: id, Payloads: payloads}
	stored, err := ask(i, func(s Store) (ports.Found, error) { return s.Find(ctx, r) })
	if err != nil {
		return Found{}, err
	}
	return i.views.found(id, &stored), nil
}

// ask makes one call of the store. Every call of the store is made by it. So each method of an
// inspector without a store returns ErrInvalidOptions, and each call of a store that panics returns
// an error.
func ask[R any](i *Inspector, call func(Store) (R, error)) (reply R, err error) {
	if i == nil || i.store == nil {
		return reply, fmt.Errorf("%w: the inspector has no store; pass one to inspect.New", ErrInvalidOptions)
	}
	defer func() {
		if v := recover(); v != nil {
			err = i.panicked(v)
		}
	}()
	return call(i.store)
}

// errStorePanicked is the error of a call in which the store panicked.
var errStorePanicked = errors.New("the store panicked; the log has the panic and its stack")

// mostPanics is the maximum number of different panics that are logged in a minute.
const mostPanics = 16

// panicked logs a panic of the store and returns it as an error. It is called by the function that
// recovers.
func (i *Inspector) panicked(v any) error {
	text := fmt.Sprint(v)
	if i.panics.Pass(time.Now(), text) {
		i.log.Error("the store panicked; the outcome of the call is unknown", "error", text, "stack", string(debug.Stack()))
	}
	return fmt.Errorf("%w: %s", errStorePanicked, text)
}
