// Package engine runs the jobs of a node. Every goroutine of Skein starts here.
//
// # Parts
//
// An [Engine] is one node; the type node has what its parts share. At the start the splitter
// divides the shards of the node's queues among the node's pools, once. A loop announces the node
// (Engine.shareShards). As nodes come and go, package membership asks the splitter which shards are
// the node's, and the loop assigns these shards or takes them away.
//
// A pool is lanes and the shards that these lanes work together. A pool has all lanes of the node
// or, if the splitter pins shards, one lane. A lane is a goroutine that runs one batch at a time. A
// lane asks the pool for a shard (pool.next), takes a batch of that shard (shard.take), runs the
// handler, and hands the outcomes back (shard.finish). Several lanes may run batches of one shard;
// the claim of an id keeps the id from running twice.
//
// Package dispatch decides for the pools. Each pool has a state there (pool.state), and each method
// of pool is an event of that state. A shard shows its pool a view: the batches that may start, and
// the jobs that the store has. An action wakes a lane for a batch that may start, or makes a grant
// for jobs in the store. A grant is the number of batches that the shard's next turn claims. If a
// user's scheduler has to be asked, a lane asks it without a lock, and the answer is an event too
// (pool.ask).
//
// A shard has a goroutine of its own (shard.run). While the shard is the node's, the goroutine
// acquires a lease, makes turns while the lease lasts, and begins again. A shard that is taken away
// settles its finished jobs and puts back the jobs that have not started. Once its handlers have
// returned, it releases its lease (shard.leaving). A turn is one exchange with the store: it
// settles finished jobs, begins recovered jobs, renews the lease and claims the next jobs. A shard
// has at most one turn in flight. Jobs that finish meanwhile go with the next turn, so turns grow
// under load. turnSlots bounds the turns in flight of all shards.
//
// # A shard
//
// The state of a shard has three parts, each a state machine in a file of its own: its lease, its
// turns, and its claims, which are the claimed jobs. A method of a part is an event. It takes the time
// and what the part has to know of the others, and returns what is to be done. It reads no clock, waits
// for nothing, and knows neither the store nor the other parts. The methods of shard lock the state,
// pass events to the parts, and carry out what they return. The transcripts in testdata show the rules
// of each part.
//
// # A turn
//
// shard.turnLoop asks shard.nextStep what to do. If there is something to send or to claim, the
// loop waits for a slot, shard.request makes the request and shard.turn sends it. shard.takeReply
// carries out the reply, step by step in one file. The store may have carried out a turn without an
// answer, so the turn is repeated unchanged. A turn that takes too long (shard.turnOverdue) gives
// its slot and its grant back. Its shard is unresponsive until the turn is answered, and meanwhile
// the pool works other shards.
//
// A recovered job starts after a turn has begun it (claims.go). A lane waits for that turn, so that
// each begun job runs. A handler that takes the payloads of a recovered job one after another waits
// for a turn between them, which ends a payload and begins the next (parts.go).
//
// Loops of the node cause turns, too. Polls, renewals and wake-ups bring news of due jobs. The tick
// looks at shards that wait for time to pass, such as a shard with jobs that go back because no
// lane is free.
//
// # Permits
//
// A queue with MaxRunning has permits. The store counts the permits of all nodes. The queue's
// limit on this node is the number of permits that the node holds, at most its share. When the
// node needs more permits or fewer, an action of the dispatcher wakes node.maintainPermits, which
// makes the calls, one at a time for each queue. shard.mayStart compares the time with the end of
// the permits, so that no batch starts after it.
//
// # Leases
//
// shard.acquire gets a lease. Each turn extends it, and Engine.maintainLeases renews the leases
// that no turn has extended for a third of the TTL. This node acts as if the lease ended a fifth of
// the TTL earlier than it ends in the store. A lease that expires, or that the store refuses, is
// dropped: all handlers of the shard are cancelled, their outcomes are not sent, and the shard is
// not acquired again until they have returned. The next owner gets the claimed jobs as orphans, and
// its first turn settles them.
//
// # Shutdown
//
// When Run's context ends, node.stop is closed. Lanes start no other batch and end with their
// handlers; after the shutdown timeout the contexts of handlers are cancelled. Then each shard
// settles its finished jobs, puts back the jobs that never started, and releases its lease. Last,
// the loops of the node end, waiting hooks are called, the last counts are sent, and the node's
// announcement is withdrawn.
//
// # Locks
//
// shard.mu guards the parts of a shard. Inside shard.mu the lock of a Batch may be taken, and inside
// that the lock of one of its contexts. lastChance.mu is taken inside shard.mu. node.pooling, which
// guards the states of all pools, and tallies.mu are taken inside both. The goroutine of a lane
// owns the lane, and the goroutine of a shard owns the shard's attempts. No function calls a store,
// a handler, a logger, an observer or a user's scheduler while it holds a lock.
//
// # Rooms and files
//
// Package ticks fires the schedules of the held shards, beside lanes and turns (schedules.go).
// Package report has the log of jobs and of the store's failures, and calls the hook of burials.
// Package execution runs a batch and works out how its jobs ended. Package guard calls users'
// functions. Package membership decides which shards are the node's. Package clock estimates the
// store's clock. The other files, from callers to callees:
//
//	engine.go, rundue.go      Run and RunDue: start, serve, drain
//	config.go, register.go    a node's configuration; how it declares its queues and retires
//	membership.go             announcing the node; shards that become the node's or another's
//	poll.go, wakeup.go        how shards learn of jobs, and when the next one is due
//	watch.go                  the log of handlers and shards that make no loop fail
//	lane.go                   running one batch after another
//	pool.go                   the events and actions of package dispatch: what lanes run and turns claim
//	permits.go                the calls by which a queue's batches are bounded over all nodes
//	shard.go                  a shard: its parts, its view, and the batches between it and lanes
//	lease.go                  the part of its lease: held until when, or by whom
//	turns.go                  the part of its turns: in flight, to be repeated, overdue
//	outbox.go                 what turns send: settlements, also those that the store carries out
//	                          later, and the ends of payloads
//	news.go                   what the store and wake-ups have said of its jobs
//	claims.go, buffer.go      the part of its claimed jobs: those that wait to start, recovered ones
//	                          among them, and the batches that run
//	acquire.go                a shard's life: assigned, acquired, turning
//	renewals.go, release.go   leases: renewed; released or dropped
//	turnloop.go, reply.go     making turns; the effects of a reply
//	startable.go, ratekeys.go jobs of a reply that may start, as marks and rates of keys allow
//	inflight.go               how many turns are in flight; turns that take too long, by the store's
//	                          usual round trip
//	schedules.go              the shards whose schedules package ticks fires
//	lastchance.go             the node's one job on its last chance
//	parts.go                  payloads of recovered jobs that end in the store one by one
//	putback.go                claimed jobs that go back, are recovered, or are cancelled
//	orphans.go                jobs that dead nodes left in queues that no node serves
//	stats.go                  what is counted of batches and of the ends of jobs
//	serverlog.go              the log of the server's start and stop
//	node.go, loop.go          what all parts share; starting, waiting and ending loops
package engine
