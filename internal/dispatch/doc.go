// Package dispatch decides what the lanes of a server run, and what its turns claim for them. It
// is pure: events come in as calls, actions go out as data, time is an argument, and it has no
// lock, channel, timer or callback. The engine locks, calls it, and carries out the actions
// (Action) after it has unlocked.
//
// # Words
//
// All numbers are of batches.
//
//   - runnable: a lane may run the batch now. Its jobs are claimed, and have not started.
//   - claimable: a turn of the shard may claim the batch from the store.
//   - granted: the shard's next turn is to claim the batch, or the turn in flight claims it.
//   - running: a lane runs the batch, or is about to.
//   - limit: how many batches of one queue may run at once on this server. It can change at any time.
//
// A lane without a batch waits, or it has been woken and is about to ask for one. A pool lacks a
// batch for each waiting lane for which no batch is runnable or granted. The stock of a shard is
// the number of batches that may be claimed before lanes are free for them. Jobs are shown to the
// scheduler, or hidden from it: while the limit is reached, while the shard needs no grant, or
// while a job on its last chance waits for another.
//
// # Events
//
// A lane calls Pool.Next for what to do: run a batch of a shard, ask the user's scheduler
// (Pool.Answer takes the answer), wait (Pool.Wait), or end. Pool.BatchEnded notes how its batch
// ended, and Pool.Taken that it has started.
//
// A shard shows its jobs with Pool.Show. Its turn carries a grant (Pool.Carry), which the reply
// answers (Pool.Answered), or which is lost (Pool.Lost). Pool.Await hides the shard for a while.
//
// Pool.Look is the tick: the scheduler wanted it at that time. Pool.SetShards, Pool.SetLanes,
// Limit.Change and Node.Stop change what there is.
//
// Permits.Plan returns the call of the store for permits, if one is due, and Permits.Answered,
// Permits.Failed, Permits.Freed and Permits.Drop take what became of them.
//
// # Bounds
//
// No more batches of a queue run than its limit. The batches that are runnable or granted are at
// most those for free lanes, and those that will start within the window (Window) by both
// estimates: how many have started, and how long they take. Limits and the stock of each shard
// lower that. Each change grants what is in demand and wakes lanes for runnable batches
// (Pool.dispatch). So a lane waits only while nothing is runnable for it, except where pools share
// a limit: there it may wait until something else changes in one of them.
//
// What keeps a shard from free lanes hides it from the scheduler: see part.start and part.mayStart.
// What may not start must not count in Pool.short, or turns claim it without end. A limit also
// bounds grants: shard.go, grant.go and schedule.go ask Limit.claimable. What a decision must know
// of a shard is a field of View.
//
// # Files
//
//	pool.go      actions; lanes, and what they do next
//	shard.go     what a pool knows of a shard, and what its scheduler sees of it
//	grant.go     what turns are to claim; estimates of how many batches will start
//	schedule.go  the order of shards: by a scheduler that keeps the heads, or by a user's; it
//	             gets the lane
//	limit.go     how many batches of a queue run at once, and how many may be claimed
//	permits.go   how many permits of a queue to hold, and how servers share them
package dispatch
