package inspect

import (
	"context"
	"log/slog"
	"reflect"
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
	// ErrFull reports a store without room for what a call writes. Nothing was written.
	ErrFull = ports.ErrFull
	// ErrQueueMismatch reports a list [ByID] of a queue that was declared without IndexIDs.
	ErrQueueMismatch = ports.ErrQueueMismatch
	// ErrTooManyTracked reports a queue with [MaxTracked] tracked ids. Untrack one of them before
	// another id is tracked.
	ErrTooManyTracked = ports.ErrTooManyTracked
	// ErrNotEmpty reports a queue that can't be forgotten because it holds jobs, dead letters,
	// schedules or records that were set aside ([Inspector.Quarantined]).
	ErrNotEmpty = ports.ErrNotEmpty
	// ErrInvalidSetting reports a setting of an unknown name, or a value that it does not accept.
	ErrInvalidSetting = core.ErrInvalidSetting
	// ErrSettingsConflict reports settings of a queue that somebody else has changed meanwhile.
	// Nothing was stored. See [SettingsConflictError].
	ErrSettingsConflict = ports.ErrSettingsConflict
	// ErrLeaseHeld reports a queue that can't be forgotten because a server has leased a shard of
	// it.
	ErrLeaseHeld = ports.ErrLeaseHeld
)

// Store is the part of a store that an [Inspector] needs. Every [ports.ShardStore] implements it.
type Store interface {
	ports.Producer
	ports.Registry
	ports.Inspector
	ports.Operator
	ports.Quarantine
	ports.Auditor
	ports.Tracker
	ports.Identity
	ports.Calendar
	ports.Limiter
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
	// layouts are the records of queues that Push uses.
	layouts *layouts
}

// New returns an inspector of a store. It doesn't contact the store and returns no error. If the
// store is nil, every method returns [ErrInvalidOptions].
func New(store Store, options Options) *Inspector {
	if v := reflect.ValueOf(store); v.Kind() == reflect.Pointer && v.IsNil() {
		store = nil
	}
	return &Inspector{
		store:  store,
		views:  viewer{decodeError: options.DecodeError},
		log:    logs.New(options.Logger),
		panics: logs.NewOnce(time.Minute, mostPanics),

		layouts: &layouts{},
	}
}

// Ping checks whether the store answers and can be used: its version, the format of its content,
// its settings and rights. It writes nothing. It returns [ErrUnusable] for a state that does not
// end by waiting.
func (i *Inspector) Ping(ctx context.Context) error {
	_, err := ask(i, func(s Store) (struct{}, error) { return struct{}{}, s.Ping(ctx) })
	return err
}
