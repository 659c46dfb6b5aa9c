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

// Observer is notified of pushes, batches, turns and leases, for metrics and
// traces. It must be fast, safe for concurrent use, and must not panic.
type Observer = ports.Observer

// NopObserver is an Observer that does nothing. Embed it in your own, which then
// has only the methods that it needs.
type NopObserver = ports.NopObserver

// PushEvent, BatchEvent, TurnEvent and LeaseEvent are what an [Observer] is notified
// of: a push, a batch at its start or end, a turn, and the start or end of a lease.
type (
	PushEvent  = ports.PushEvent
	BatchEvent = ports.BatchEvent
	TurnEvent  = ports.TurnEvent
	LeaseEvent = ports.LeaseEvent
)

// isNil reports whether an interface is nil or has a nil pointer in it.
func isNil(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.Kind() == reflect.Pointer && value.IsNil()
}
