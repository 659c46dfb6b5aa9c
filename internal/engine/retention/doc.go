// Package retention removes the oldest dead letters of queues that keep only some (docs/rules.md 5).
//
// A [Keeper] looks once a minute at the shards that the server holds, and removes what they have too
// many of, in the bounded steps of an operator. It needs no fence: each step tells the store how many
// dead letters to keep, so two servers that look at one shard remove the same ones, or the later one
// finds fewer. What a Keeper removes is counted, and is in the audit as one entry for each queue and
// hour, which is updated meanwhile.
package retention
