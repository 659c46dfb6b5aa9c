// Package conformance is the suite that any [ports.ShardStore] is held against. A store
// passes it with one test:
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
//			backend := mystore.NewBackend(t, clock)
//			return func() ports.ShardStore { return backend.Open() }
//		})
//	}
//
// [RunDisturbed] is for backends that are disturbed meanwhile, and leaves out what carries many MiB. No other case can be skipped. Each
// has a fresh backend, is named by its rule, and reports with a failure the sentence of the
// contract that the store breaks. docs/stores.md says how to read that, and what the suite
// can't prove.
package conformance
