package skein

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ErrUnknownQueue is a queue that no push and no server has declared in this
// store.
var ErrUnknownQueue = ports.ErrUnknownQueue

// InspectorStore is what an Inspector needs of a store. Every ports.ShardStore
// has it.
type InspectorStore interface {
	ports.Registry
	ports.Inspector
	ports.Operator
}

// InspectorOptions are the options of an inspector. The zero value is ready.
type InspectorOptions struct {
	// DecodeError turns the text of a stored error back into what it was made
	// of, where the servers encode errors. It must be safe for concurrent use.
	// nil shows them as they are stored.
	DecodeError func(stored string) string
}

// Inspector shows what is in a store and lets an operator act on it. It needs
// neither client nor server, and works for every queue of the store, whatever the
// type of its payloads: here they are bytes. It is safe for concurrent use. Times
// are by the store's clock.
//
// Lists are fetched page by page while they are ranged over, and each range
// begins anew. They are no snapshot: an element that stays as it is throughout
// comes exactly once, one that moves meanwhile may come twice or not at all. An
// error comes as the last pair, with a zero element.
//
// Actions on many entries work in bounded steps, each atomic for its shard. Those
// on ids or payloads that are named ignore what is not there, and do nothing at
// all if one of the ids is none: ErrInvalidID. Those on all of a kind end, also
// while servers are at work: they count at most as many entries as each shard
// held when they began. A step of unknown outcome is repeated a few times, so
// that entries which came meanwhile may be handled beyond those counted. When
// ctx ends, or the store keeps failing, an action returns what it has done so
// far, and the error; it may be called again to go on.
//
// A queue that the store doesn't know is ErrUnknownQueue. An error that is none
// of this package's is the store's.
type Inspector struct {
	store   InspectorStore
	options InspectorOptions
}

// NewInspector makes an inspector of a store. It does not reach for it, and never
// fails: without a store, every method returns ErrInvalidOptions.
func NewInspector(store InspectorStore, options InspectorOptions) *Inspector {
	if absent(store) {
		store = noStore{}
	}
	return &Inspector{store: store, options: options}
}

// Queues lists the queues of the store in order of name.
func (i *Inspector) Queues(ctx context.Context) ([]QueueInfo, error) {
	queues, err := i.store.Queues(ctx)
	return convert(queues, queueInfo), err
}

// Nodes lists the running servers in order of name.
func (i *Inspector) Nodes(ctx context.Context) ([]Node, error) {
	nodes, err := i.store.Nodes(ctx)
	return convert(nodes, nodeOf), err
}

// Stats sums up the named queues, in the order given, or all of them in order of
// name if none is named.
func (i *Inspector) Stats(ctx context.Context, queues ...string) ([]QueueStats, error) {
	if len(queues) == 0 {
		all, err := i.store.Queues(ctx)
		if err != nil || len(all) == 0 {
			return nil, err
		}
		queues = convert(all, func(q *ports.Queue) string { return q.Name })
	}
	stats, err := i.store.Stats(ctx, queues)
	return convert(stats, queueStats), err
}

// History lists the minutes of a queue that begin within from, inclusive, and to,
// exclusive, and in which something was counted, oldest first. The zero from is
// the oldest there is, the zero to has no end. At least 24 hours are kept.
func (i *Inspector) History(ctx context.Context, queue string, from, to time.Time) ([]MinuteStats, error) {
	r := ports.HistoryRequest{Queue: queue, From: core.InstantOf(from)}
	if !to.IsZero() {
		r.To = max(1, core.InstantOf(to)) // 0 has no end
	}
	minutes, err := i.store.History(ctx, r)
	return convert(minutes, minuteOf), err
}

// Find looks an id up in a queue: queued, claimed and in the morgue, with all its
// payloads. It returns ErrInvalidID for what is no id.
func (i *Inspector) Find(ctx context.Context, queue, id string) (Found, error) {
	there, err := i.store.Find(ctx, queue, id)
	if err != nil {
		return Found{}, err
	}
	found := Found{ID: id, Shard: there.Shard}
	if q := there.Queued; q != nil {
		job := i.queuedJob(&ports.JobView{Job: *q, Count: len(q.Payloads)}, ByTime)
		found.Queued = &job
	}
	if there.Claim != nil {
		job := i.claimedJob(there.Claim)
		found.Claimed = &job
	}
	if d := there.DeadLetter; d != nil {
		letter := i.deadLetter(&ports.DeadLetterView{DeadLetter: *d, Count: len(d.Payloads)}, ByTime)
		found.DeadLetter = &letter
	}
	return found, nil
}

// errorText is a stored error as it is shown.
func (i *Inspector) errorText(stored string) string {
	if stored == "" || i.options.DecodeError == nil {
		return stored
	}
	return i.options.DecodeError(stored)
}

// convert is what f makes of each element; nil of nil.
func convert[P, V any](list []P, f func(*P) V) []V {
	if list == nil {
		return nil
	}
	views := make([]V, len(list))
	for at := range list {
		views[at] = f(&list[at])
	}
	return views
}
