// Package ports is the interface between Skein and its environment: [ShardStore], the contract of
// every backend, and [Observer], which receives events.
//
// To write a store, implement the interfaces of ShardStore as their doc comments demand, and
// run package [github.com/skeinq/skein/conformance] against it:
//
//	func TestStore(t *testing.T) {
//		conformance.Run(t, func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
//			backend := mystore.NewBackend(t, clock)
//			return func() ports.ShardStore { return backend.Open() }
//		})
//	}
//
// The doc comments are the contract; other pages link here. The rules of jobs that they refer to
// are docs/rules.md: "docs/rules.md 2" is its section 2.
//
// # Where to begin
//
//   - [Producer] stores pushes.
//   - [Consumer] leases shards, claims jobs and settles them. Its Turn is the heart of a store.
//   - [Observer] is the interface for metrics and traces; embed [NopObserver] to write one.
//
// [Registry], [Permitter], [Limiter], [Inspector], [Operator], [Quarantine], [Auditor], [Tracker],
// [Identity] and [Calendar] are the rest of a store. [Notifier], [Checker], [Settler], [Pooled] and
// [TurnLimiter] are optional: a type assertion finds them.
//
// # What is promised
//
// Until version 1 a minor release may add methods to these interfaces and fields to requests and
// replies. The changelog lists each one with what a store must do, and package conformance has a
// case for it. A patch release adds none. From version 1 on, a new ability is an optional
// interface.
//
// # Terms
//
//   - A queue is divided into shards, and each id belongs to one of them. The layout of a queue is
//     its shard count and a generation, a number that rises with each new layout.
//   - A lease is an owner's right to run a shard. Its token, which only grows, is the fence: a call
//     with an older token is refused.
//   - A turn is one exchange of the lease's owner with the store: it settles finished jobs, renews
//     the lease and claims the next jobs.
//   - A claimed job has a receipt: the token and the number of the turn that claimed it. A
//     settlement names the job by its receipt.
//   - An orphan is a job that an earlier lease left claimed.
//   - A shard's head is the time at which its next job could be claimed.
//   - A dead letter is the buried payloads of one id, in the morgue.
//   - A shard's quarantine holds the records that the store can't read.
//
// # For all methods
//
// Every method may be called from any number of goroutines, processes and servers at once, and is
// linearizable for each shard: its effect on a shard happens at one instant between call and
// return. A call that spans shards is atomic for each shard, never across shards.
//
// A store has a clock of its own, in whole microseconds. Requests carry delays. They carry an
// instant only if the caller got it from the store or chose it for a push. If the clock steps back,
// jobs become due later, but no promise is broken.
//
// A store reads a request only during the call, except for the Data and Meta in it: these bytes are
// shared from then on, and neither side changes them. Slices of a reply belong to the caller. The
// payloads in them, with their Data and Meta, are read-only.
//
// Any error other than the sentinels of this package and of core means that the outcome is unknown:
// the call may have taken effect, and may still do so until its connection is closed. Each method
// documents the effect of a repeated call. Adapters translate their driver's errors once and let no
// driver type cross the port. The one exception is a call in a caller's transaction: its error may
// wrap that of the caller's driver. If the context ends during a call, the call returns soon with
// the context's error wrapped, and its outcome is unknown too.
package ports
