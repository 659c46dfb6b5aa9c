// Package skein runs background jobs that belong to an entity: an order, an account, a document.
//
// All payloads that are pushed for one id wait as one job, in order of a score. A handler is called
// with everything that happened to the order since the last call, in that order. Executions for one
// id never overlap, on any number of servers.
//
// # A first program
//
//	// Orders has one job for each order with unhandled events.
//	var Orders = skein.NewQueue("orders", skein.QueueOptions[Event]{})
//
//	// Push an event. It needs no running server.
//	client := skein.NewClient(store, skein.ClientOptions{})
//	err := Orders.Push(ctx, client, "order-42", Event{Number: 7, What: "paid"})
//
//	// Handle the events of each order, one after another, until ctx ends.
//	handler := Orders.Each(func(ctx context.Context, id string, e Event) error {
//		return apply(ctx, id, e)
//	})
//	err = skein.NewServer(store, skein.ServerOptions{}, handler).Run(ctx)
//
// # Where to begin
//
//   - [Queue] names a stream of jobs, their payload type and their options. [NewQueue] makes one.
//   - [Client] pushes payloads: [Queue.Push] and [Queue.PushMany].
//   - [Server] runs handlers: [Server.Run] until its context ends, [Server.RunDue] until nothing is
//     due.
//
// A [Store] keeps the jobs. Packages [github.com/skeinq/skein/adapters/memory],
// [github.com/skeinq/skein/adapters/redis] and [github.com/skeinq/skein/adapters/postgres] each
// have one.
//
// # Handlers and outcomes
//
// [Queue.Each] calls the handler for each payload, [Queue.Handler] with all payloads of one id,
// [Queue.JobHandler] with the whole job, and [Queue.BatchHandler] with several jobs.
//
// A job whose handler returns nil is done. After an error or a panic the job is retried with
// backoff. When its retries are used up, its first payload goes to the morgue, the queue's list of
// dead letters, or with [Hold] the job is held. A handler chooses another outcome by returning
// [Bury], [Snooze], [Await] or [RetryIn].
//
// # Terms
//
//   - The queue divides its ids into shards. A server leases the shards that it serves.
//   - A lane is a goroutine of a server that runs one batch of jobs at a time.
//   - A claimed job is a job that a server has taken from the queue to run it.
//   - A turn is one exchange between a server and the store for one shard. It settles finished
//     jobs, renews the lease and claims the next jobs.
//   - The morgue is the queue's dead letters. An operator can revive, edit and purge them.
//
// # Guarantees
//
// A push that returned nil is stored. Handlers run at least once: after a crash, interrupted jobs
// run again. [SettleIn] commits the outcome together with the handler's own writes to Postgres, so
// those writes happen exactly once. A process that was paused past its lease can overlap with its
// successor; [Fence] returns a token by which other systems can refuse its writes.
//
// # More
//
//   - Package [github.com/skeinq/skein/inspect] lists and changes jobs without a server.
//   - Package [github.com/skeinq/skein/skeintest] tests handlers.
//   - docs/README.md lists the pages of the guide. The rules of jobs are in docs/rules.md.
package skein
