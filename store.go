package skein

import (
	"reflect"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Store is where jobs are kept: adapters/memory, adapters/redis and
// adapters/postgres each have one. [ports.ShardStore] is the contract.
type Store = ports.ShardStore

// RawPayload is a payload as a store keeps it: its encoded Data, its Score and its
// Meta. Read-only.
type RawPayload = core.Payload

// RawEntry is one encoded entry: an id, Data, Score, Meta and when the job may run.
type RawEntry = core.Entry

// Observer is notified of pushes, batches, the ends of jobs, turns, failures of the store, leases and
// nodes, for metrics and traces. docs/metrics.md says which metric comes of which method. It
// must be fast, safe for concurrent use, and must not panic.
type Observer = ports.Observer

// NopObserver is an [Observer] that does nothing. Embed it in your own, which then
// has only the methods that it needs.
type NopObserver = ports.NopObserver

// PushEvent is one push, for [Observer].Pushed: its queue, how many entries, how long
// it took and its error.
type PushEvent = ports.PushEvent

// BatchEvent is a batch at its start or end, for [Observer].BatchStart and BatchEnd: its
// shard, lane and claims; at the end their outcomes, and how long the handler ran.
type BatchEvent = ports.BatchEvent

// TurnEvent is one exchange of a shard with the store, for [Observer].TurnEnd: how many
// jobs it settled and claimed, how long it took and its error.
type TurnEvent = ports.TurnEvent

// LeaseEvent is the start or the end of a lease, for [Observer].LeaseChanged: a constant such as [ports.LeaseAcquired].
type LeaseEvent = ports.LeaseEvent

// EndEvent is the end of jobs that the store has kept, for [Observer].JobsEnded. How each ended is a constant such as
// [ports.EndDone].
type EndEvent = ports.EndEvent

// OverrunEvent is a handler that goes on long after the end of its context, for
// [Observer].HandlerOverran, with its cause, such as [ports.OverrunTimeout].
type OverrunEvent = ports.OverrunEvent

// FailureEvent is a call of a server to the store that failed, for [Observer].StoreFailed, with its kind, such as
// [ports.FailureUnreachable].
type FailureEvent = ports.FailureEvent

// Node is a server as others see it, with what it does, for [Server.Node].
type Node = ports.Node

// isNil reports whether an interface is nil or has a nil pointer in it.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.Kind() == reflect.Pointer && value.IsNil()
}
