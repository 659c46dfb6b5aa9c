// Package core holds the rules of Skein as pure functions: what a job is, how
// jobs merge, what a failure or a recovery does to one, where an id lives and
// which shard runs next.
//
// Nothing here does I/O, starts a goroutine, reads a clock or draws a random
// number: time and jitter are arguments. Values are not safe for concurrent use
// unless their comment says so; functions without a receiver are.
//
// The law is docs/rules.md; comments name its sections as "RULES 2". The same
// law as data is in testdata.
package core
