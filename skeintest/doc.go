// Package skeintest tests handlers, retries, the morgue and pushes, without a server, without
// sleeping, and without a synctest bubble.
//
// A [Store] keeps its jobs in memory and has a clock that only the test moves. [Store.Drain] runs
// the jobs that are due, moves the clock to the next due job, and continues up to a given time. All
// handlers run in the test's own goroutine. Drain returns the executions:
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
// # Where to begin
//
//   - [Store] is a store, a client and an inspector for one test. [New] makes one.
//   - [Event] is one execution of a job. [AssertEvents] compares events with lines of text.
//   - [Job] is a job to run once with [Run], or one to compare with.
//
// [AssertPushed] and [AssertMorgue] compare the jobs of a queue and of its morgue. [AssertDecodes]
// checks that a queue's codec still reads payloads of an earlier version. Store.Twice runs each job
// twice, to find handlers that are not idempotent.
//
// # Failures
//
// A [FailingStore] fails calls on demand, for tests of what a program does when a push fails. Each
// [Store] is one too:
//
//	s.Fail(skeintest.Fault{Method: "Push", Times: 1})
//
// The package imports only the standard library and Skein.
package skeintest
