// Package core holds the rules of Skein as pure functions: what a job is, how jobs merge, what a
// failure or a recovery does to a job, which shard an id belongs to, and which shard runs next.
//
// Most programs don't need this package. It is for authors of stores, of a [Splitter] and of a
// [Scheduler].
//
//	// What a store does when a push meets a queued job:
//	state := core.MergePush(queued.State, entry.State(now), entry.When.Rule(rule))
//	payloads := core.MergePayloads(queued.Payloads, []core.Payload{entry.Payload})
//
// # Where to begin
//
//   - [Job] is an id, its payloads and its [State]; [MergePush] and [MergeReturn] merge jobs.
//   - [Settlement] is the effect of an outcome on a claimed job; [RetryPolicy] computes it.
//   - [Scheduler] chooses the next shard; [Lag], [Seq], [StrictBy] and [WeightedBy] make one.
//
// # For all functions
//
// No function does I/O, starts a goroutine, reads a clock or draws a random number: time and jitter
// are arguments. Functions without a receiver are safe for concurrent use. Methods that change
// their receiver are not, unless a comment promises it.
//
// The rules are written in docs/rules.md; a comment that names "docs/rules.md 2" means its section
// 2. The directory testdata has worked cases of the rules, as data.
package core
