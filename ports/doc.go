// Package ports is what Skein asks of the world: [ShardStore], the contract that
// every backend keeps, and [Observer], which is notified of what happens.
//
// The doc comments are the contract; other pages link here. What a store is
// held against is package conformance. "RULES 2" is section 2 of docs/rules.md.
//
// # Words
//
//   - A queue is cut into shards, and an id lives in one of them. Its layout is its
//     shard count with a generation, a number that is raised with each new layout.
//   - A lease is an owner's right to work a shard. Its token, which only grows, is the
//     fence: a call with an older one is refused.
//   - A turn is one exchange of the lease's owner with the store: it settles jobs that
//     are finished, renews the lease and claims the next jobs.
//   - A claimed job has a receipt, the token and the number of the turn that claimed it,
//     by which its settlement names it.
//   - An orphan is a job that an earlier lease left claimed.
//   - A shard's head is when its next job could be claimed.
//   - A dead letter is what the morgue holds for an id.
//   - A shard's quarantine has the records that the store can't read.
//
// # For all methods
//
// Every method may be called from any number of goroutines, processes and
// nodes at once, and is linearizable for each shard: it takes effect at one
// instant between call and return. Where a call spans shards it is atomic for
// each, never across them.
//
// A store's time is its own, in whole microseconds; requests carry delays, and
// an instant only where the caller had it from the store or chose it for a
// push. A clock that steps back delays what is due but breaks no promise.
//
// Requests are read only during the call, but for the bytes in them: Data and
// Meta are shared from then on and nobody changes them. Slices of a reply belong
// to the caller; the payloads in them, their Data and Meta are read-only.
//
// Any error but the sentinels of this package and of core means that
// the outcome is unknown: the call may have taken effect, and may still do so
// until its connection is gone. Each method says what a repeated call does.
// Adapters translate their driver's errors once and let no driver type cross
// the port. A context that ends makes a call return soon with the context's
// error wrapped; its outcome is then unknown too.
package ports
