// Package conformance is the test suite for every [ports.ShardStore]. A store passes it with one
// test:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
//			backend := mystore.NewBackend(t, clock)
//			return func() ports.ShardStore { return backend.Open() }
//		})
//	}
//
// # Where to begin
//
//   - [Factory] makes the backends that the suite tests. [Run] runs the suite.
//   - [Transactor], [Severer] and [Damager] are optional: a store that implements them is tested
//     more.
//
// Each case has a fresh backend and is named after its rule. A failure reports the sentence of the
// contract that the store breaks. "RULES 2" in such a sentence means section 2 of docs/rules.md. A
// store can't opt out of a case. Only -short and [RunDisturbed], which is for backends whose
// connections break during the test, leave out the largest cases. docs/contributing/stores.md
// describes how to read the failures, and what the suite can't prove.
//
// # What is promised
//
// A release may add cases, so a store that passed may fail then: it never met the contract, or the
// contract has grown, which the changelog states. [Run], [RunDisturbed] and [Factory] stay as they
// are until version 1. The names of cases may change.
//
// # Rooms
//
// The cases are in internal/cases, in rooms by the caller of the store. A case works with
// internal/env. The other tests that [Run] makes are in internal/random, internal/racing and
// internal/faults. internal/broken shows that the suite finds faults.
package conformance
