// Package ticks fires the schedules of a server's shards (docs/rules.md 10).
//
// A [Firer] looks at all shards that the server holds, at their next tick and once per poll
// interval, since schedules change without notice. A shard with due schedules is fired by a
// goroutine of its own, so a shard that does not answer delays no other. Each firing is computed by
// package core from one revision of the schedule, and the store applies it to that revision only.
// So nothing here is needed for a tick to be fired once: servers that fire the same shard at the
// same time do the same work twice, and the store refuses one of them.
//
//	firer.go  the loop over all shards
//	shard.go  the firing of one shard
package ticks
