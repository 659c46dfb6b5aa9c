// Package skein runs background jobs that belong to an entity: an order, an
// account, a document. What is pushed for one id is merged into one job, which
// keeps its payloads in order of score, and two executions for one id never
// overlap. So a handler is called with all that has happened to an order since it
// was last called, in order, and nobody else works on that order meanwhile.
//
//	var orders = skein.NewQueue("orders", skein.QueueOptions[Event]{})
//
//	client := skein.NewClient(store, skein.ClientOptions{})
//	err := orders.Push(ctx, client, "order-42", Event{Number: 7})
//
//	handler := orders.Each(func(ctx context.Context, id string, e Event) error { return apply(ctx, id, e) })
//	err = skein.NewServer(store, skein.ServerOptions{}, handler).Run(ctx)
//
// The store is that of package adapters/memory, adapters/redis or
// adapters/postgres. [Queue.Each] handles payload by payload, [Queue.Handler] all
// of an id's at once, [Queue.JobHandler] and [Queue.BatchHandler] more. A handler
// that returns nil is done; an error or a panic is retried with backoff, and what
// fails too often goes to the morgue. [Bury], [Snooze] and [RetryIn] are other
// outcomes.
//
// Handlers run at least once, since a crash repeats what it interrupted.
// [SettleIn] makes what a handler writes to Postgres happen exactly once; [Fence]
// lets others refuse the writes of a process that was paused too long.
//
// Package inspect looks and acts without a server, package skeintest tests
// handlers. The guide is docs/guide.md.
package skein
