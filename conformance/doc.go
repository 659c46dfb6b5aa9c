// Package conformance is the suite that any store is held against.
//
//	func TestConformance(t *testing.T) {
//		conformance.Run(t, func(t testing.TB, clock func() time.Time) func() ports.ShardStore {
//			backend := mystore.NewBackend(t, clock)
//			return func() ports.ShardStore { return backend.Open() }
//		})
//	}
//
// It takes no opt-outs. Each case has a fresh backend and is named by the rule
// that a store which fails it breaks.
package conformance
