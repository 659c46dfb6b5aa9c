// Package bulk carries out actions on many entries of a queue: shard by shard, in bounded steps. It
// knows neither the store nor what the action does with an entry; callers pass both as functions.
//
//   - tally.go: [Tally], the counts of any action.
//   - run.go: [Run], an action on all entries of a kind: its shards, its limits and its rate.
//   - checkpoint.go: [Standing], how far a run is, as a text with which another call continues it.
//   - visit.go: [Visit], a run that lists the entries and chooses among them.
//   - repeat.go: [Repeat], a run that repeats a step for which the store chooses the entries.
//   - steps.go: [Steps], [ByShard], [Whole] and [Refs], which divide named entries into steps.
//
// The size of a step is set in repeat.go if the store chooses the entries; in visit.go, with the
// page of package inspect's bulk.go, if the action does; and in steps.go for named entries, or in
// inspect's jobs.go if a step names ids only. ports.MaxStep, the contract of stores, limits all.
package bulk
