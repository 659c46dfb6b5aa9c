// Package skeintest tests handlers, retries, the morgue and what is pushed, with
// no server, no sleeping, and no synctest bubble.
//
// A [Store] keeps its jobs in memory and has a clock that only the test moves.
// [Store.Drain] runs what is due, moves the clock to what is due next, and so on up
// to a time, all in the test's own goroutine; it returns what happened:
//
//	func TestAnOrderIsRetried(t *testing.T) {
//		s := skeintest.New()
//		if err := Orders.Push(t.Context(), s.Client, "order-1", Event{Number: 1}); err != nil {
//			t.Fatal(err)
//		}
//		events := s.Drain(t, time.Hour, Orders.Handler(handleOrder))
//		skeintest.AssertEvents(t, events,
//			`0s orders order-1 [{"Number":1}] failed: no such item`,
//			`15s orders order-1 [{"Number":1}] done`,
//		)
//	}
//
// [Run] runs a handler once on one job, which may have failed before.
// [AssertPushed] and [AssertMorgue] compare what a queue and its morgue hold. A
// [FailingStore], which each [Store] is too, fails calls on demand, to test what a
// program does when a push fails.
//
// The package needs nothing but the standard library and Skein.
package skeintest
