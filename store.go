package skein

import (
	"reflect"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Store keeps jobs. Packages adapters/memory, adapters/redis and adapters/postgres each have one.
// [ports.ShardStore] is the contract.
type Store = ports.ShardStore

// RawPayload is a payload as a store keeps it: its encoded Data, its Score and its Meta. Read-only.
type RawPayload = core.Payload

// RawEntry is one encoded entry of a push: an id, Data, Score, Meta, tags, the time when the job may
// run, and the time of [OnceIn].
type RawEntry = core.Entry

// Observer is notified of pushes, batches, ends of jobs, turns, failures of the store, leases and
// servers, for metrics and traces. docs/reference/metrics.md maps its methods to metrics. It must
// be fast and safe for concurrent use, and must not panic.
type Observer = ports.Observer

// NopObserver is an [Observer] that does nothing. Embed it in your own Observer, which then needs
// only the methods that it uses.
type NopObserver = ports.NopObserver

// PushEvent is one push, for [Observer].Pushed: its queue, its number of entries, its duration and
// its error.
type PushEvent = ports.PushEvent

// BatchEvent is the start or the end of a batch, for [Observer].BatchStart and BatchEnd: its shard,
// lane and claims. At the end it also has the outcomes and the duration of the handler.
type BatchEvent = ports.BatchEvent

// TurnEvent is one exchange of a shard with the store, for [Observer].TurnEnd: the numbers of
// settled and claimed jobs, its duration and its error.
type TurnEvent = ports.TurnEvent

// LeaseEvent is the start or the end of a lease, for [Observer].LeaseChanged. Its values are
// constants such as [ports.LeaseAcquired].
type LeaseEvent = ports.LeaseEvent

// EndEvent is the end of jobs that the store has confirmed, for [Observer].JobsEnded. Constants
// such as [ports.EndDone] are the ways in which jobs end.
type EndEvent = ports.EndEvent

// OverrunEvent is a handler that continues long after the end of its context, for
// [Observer].HandlerOverran, with the cause, such as [ports.OverrunTimeout].
type OverrunEvent = ports.OverrunEvent

// FailureEvent is a failed call of a server to the store, for [Observer].StoreFailed, with its
// kind, such as [ports.FailureUnreachable].
type FailureEvent = ports.FailureEvent

// Node is the announced state of a server, as other servers see it. [Server.Node] returns this
// server's.
type Node = ports.Node

// isNil reports whether an interface is nil or has a nil pointer in it.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.Kind() == reflect.Pointer && value.IsNil()
}
