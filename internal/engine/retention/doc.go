// Package retention removes the oldest dead letters of queues that keep only some (docs/rules.md 5).
//
// A [Keeper] looks once a minute at the shards that the server holds, and removes what they have too
// many of, in the bounded steps of an operator. It needs no fence: two servers that look at one
// shard remove the same dead letters, or one after the other finds fewer, since it counts them before
// each step. Only steps at the very same time remove too many, one step at most. What a Keeper
// removes is counted, and is in the audit as one entry for each queue and hour, which is updated
// meanwhile.
package retention
