// Package skein runs background jobs that belong to an entity: an order, an
// account, a document.
//
// # Jobs
//
// What is pushed for one id is merged into one job, which keeps its payloads in
// order of score. Two executions for one id never overlap. So a handler is called
// with all that has happened to an order since it was last called, in order, and
// nobody else works on that order meanwhile.
//
// A queue is a value that pushers and handlers share. It names the stream, the
// type of its payloads, and its options, of which the zero value is ready:
//
//	var Orders = skein.NewQueue[Event]("orders", skein.QueueOptions[Event]{})
//
// # Pushing
//
// A client pushes to a store. It waits for no worker:
//
//	client := skein.NewClient(store, skein.ClientOptions{})
//	err := Orders.Push(ctx, client, "order-42", Event{Number: 7}, skein.Score(7))
//
// The Score places a payload among those of its job; by default it is the time of
// the push. At and In say when a new job may run, Meta goes along with a payload,
// and PushMany stores many entries in one exchange. What is pushed onto a queued
// job merges with it and keeps its time; Earliest and Debounce are other rules. A
// push that returned nil is kept. One whose outcome is unknown returns an error,
// and may be repeated: what is still queued merges.
//
// # Handling
//
// A server works queues until its context ends, and then drains:
//
//	handler := Orders.Handler(func(ctx context.Context, id string, events []Event) error {
//		return index.Apply(ctx, id, events)
//	})
//	err := skein.NewServer(store, skein.ServerOptions{Lanes: 16}, handler).Run(ctx)
//
// The error that a handler returns is its job's outcome: nil is done, any other
// is retried with backoff, and a panic is an error. Bury, Snooze and RetryIn make
// other outcomes. When the retries are used up the first payload goes to the
// morgue, and the others go on. The log has each failure, and OnBuried is told what
// went to the morgue and why.
//
// Each takes payload by payload instead, so that after a failure none before it is
// run again, and the first one left, which goes to the morgue, is the one that
// failed. It is the handler for whoever would write a loop over the payloads.
// JobHandler shows a job's scores and retries and settles payloads by themselves;
// BatchHandler takes many ids in one call.
//
// Handlers run at least once: after a crash, jobs whose end the store has not
// heard of run again. A process that was paused past its lease can overlap with
// its successor until it notices. It can settle nothing then, and Fence gives a
// token by which others can refuse its writes. What a handler writes in the
// transaction in which it calls Settle happens exactly once.
//
// # Stores
//
// The store is chosen in one line: memory.New(memory.Options{}) keeps jobs in the
// process, for tests and for work that can be pushed again; packages adapters/redis
// and adapters/postgres keep them on servers. Package ports is the contract for
// others, and package conformance the suite that holds them to it.
//
// # Looking and acting
//
// Package inspect shows what is queued, claimed and dead, and pauses, cancels and
// revives, without a server. Package skeintest runs handlers in a test, without a server and
// without sleeping.
package skein
