// Package engine runs the jobs of a node. Every goroutine of Skein starts here.
//
// # Parts
//
// An [Engine] is one node (node is what its parts share). Its splitter chooses the pools for the
// shards of its queues, once, at the start, and which of them are its own among the nodes that are
// alive: the membership announces the node, and assigns shards and takes them away as nodes come
// and go.
//
// A pool is lanes and the shards that they work together. It has all lanes of the node or, where
// the splitter pins shards, one. A lane is a goroutine that runs one batch at a time. It asks the
// pool for a shard (pool.next), takes a batch of that shard (shard.take), runs the handler, and
// hands the outcomes back (shard.finish). Several lanes may run batches of one shard: what keeps
// an id from running twice is its claim.
//
// Package dispatch decides for the pools: each has a state there (pool.state), and each method of
// pool is an event of it. A shard shows its pool a view: which batches may start, and what the
// store has. The actions wake lanes for the one and grant for the other: a grant is how many
// batches the shard's next turn claims. A lane that is to ask a user's scheduler does so without a
// lock, and its answer is an event too (pool.ask).
//
// A shard has a goroutine of its own (shard.run). While the shard is the node's, it acquires a
// lease, turns while that lasts, and begins again. One that is taken away settles, puts back what
// has not started and, when its handlers have returned, releases its lease (shard.leaving). A turn
// is one exchange with the store: it settles what has finished, begins recovered jobs, renews the
// lease and claims the next jobs. At most one is in flight; what finishes meanwhile goes with the
// next, so that batches form by themselves under load. turnSlots bounds the turns in flight of all
// shards.
//
// # A turn
//
// shard.turnLoop asks shard.nextStep what to do. If there is something to send or to claim, it
// waits for a slot, shard.request makes the request and shard.turn sends it. shard.takeReply
// carries out the reply, step by step in one file. A turn without an answer may have been carried
// out, so it is repeated as it was. A turn that takes too long (shard.turnOverdue) gives its slot
// and its grant back, and the shard is unresponsive until it has an answer: the pool works others.
//
// A recovered job starts after a turn has begun it (begin.go). Its lane waits for that turn, so
// that nothing is begun that does not run.
//
// Loops of the node cause turns, too: polls, renewals and wake-ups bring news of jobs that are
// due, and the tick sees to what waits for time to pass, such as jobs that go back since no lane
// is free.
//
// # Permits
//
// A queue with MaxRunning has permits. The store counts the permits of all nodes. The queue's
// limit is the number that this node holds, at most its share. When more or fewer are needed, an
// action of the dispatcher wakes node.maintainPermits, which makes the calls, one at a time for
// each queue. shard.mayStart looks at the time until which they last, so that no batch starts
// after it.
//
// # Leases
//
// shard.acquire gets a lease. Each turn extends it, and Engine.maintainLeases renews those that no
// turn has extended for a third of the TTL. This node acts as if the lease ended a fifth of the TTL
// earlier than the store has it. A lease that runs out or that the store refuses is dropped: all
// handlers of the shard are cancelled, nothing of them is sent, and the shard is not acquired again
// until they have returned. The next owner gets the claimed jobs as orphans, and its first turn
// settles them.
//
// # Shutdown
//
// When Run's context ends, node.stop is closed. Lanes start nothing more and end with their
// handlers; after the shutdown timeout the contexts of handlers are cancelled. Then each shard
// settles what has finished, puts back what never started, and releases its lease. Last, the loops
// of the node end, waiting hooks are called, what was counted last is sent, and the node's
// announcement is withdrawn.
//
// # Locks
//
// shard.mu guards a shard's state. The Batch has a lock of its own, taken inside it, and so have
// its contexts, taken inside that. lastChance.mu is taken inside shard.mu, and node.pooling, which
// guards the states of all pools, and tallies.mu inside both. The goroutine of a lane owns the
// lane, that of a shard its attempts. Nothing calls a store, a handler, a logger, an observer or a
// user's scheduler with a lock held.
//
// # Files
//
// From callers to callees:
//
//	engine.go, rundue.go      Run and RunDue: start, serve, drain
//	config.go, register.go    what a node is given; how it declares its queues and retires
//	membership.go, nodelog.go how nodes share their queues' shards, and what the log reports of it
//	assigned.go               a shard that becomes the node's or another's
//	poll.go, wakeup.go        how shards learn of work
//	watch.go                  what is logged of handlers and shards that make no loop fail
//	lane.go                   running one batch after another
//	pool.go                   the events and actions of package dispatch: what lanes run and turns claim
//	permits.go                the calls by which a queue's batches are bounded over all nodes
//	shard.go                  a shard's state, and what it and lanes hand each other
//	acquire.go, lease.go      a shard's life; its lease: extended, renewed, released, dropped
//	turn.go, reply.go         what a turn sends; what its reply does
//	inflight.go               how many turns are in flight; turns that take too long
//	begin.go, buffer.go       claimed jobs that wait to start, recovered ones among them
//	putback.go, cancel.go     claimed jobs that go back, are recovered, or are cancelled
//	orphans.go                what dead nodes left in queues that nobody serves
//	deferred.go               settlements that the store carries out later
//	head.go                   when a shard's next job is due
//	results.go, stats.go      how jobs ended, once the store confirms it; what is counted of that
//	joblog.go, joblines.go    what is logged of jobs, and how often; its lines
//	serverlog.go              what is logged of the server's start and stop
//	buried.go, hooks.go       what went to the morgue; the calls of Config.Buried
//	transaction.go            settling in the handler's transaction
//	batch.go, outcome.go      a batch and its outcomes
//	jobrun.go, overdue.go     jobs of a batch one after another; handlers that outlast their context
//	runctx.go                 a handler's context
//	node.go, loop.go          what all parts share; starting, waiting and ending loops
//	outages.go, panic.go      failures of the store; panics
//	mismatch.go               errors and log lines about another shard count
//	estimate.go               the store's clock, its round trips, how long jobs take
package engine
