// Package inspect shows what is in a store and lets an operator act on it: list
// jobs and dead letters, pause a queue, cancel, delete, bury, revive and edit.
//
// An [Inspector] needs the store and the name of a queue. It needs neither client
// nor server nor the type of the payloads, which are bytes here:
//
//	inspector := inspect.New(store, inspect.Options{})
//	stats, err := inspector.Stats(ctx) // of all queues
//
// Looking: [Inspector.Ping], [Inspector.Queues], [Inspector.Nodes], [Inspector.Stats],
// [Inspector.History], [Inspector.Find], [Inspector.Why], and the lists [Inspector.Jobs],
// [Inspector.Claimed] and [Inspector.Morgue].
//
// Acting on a queue: [Inspector.Pause], [Inspector.Resume], [Inspector.Forget],
// [Inspector.Recount], [Inspector.Discard] of what [Inspector.Quarantined] lists. On jobs: [Inspector.RunNow], [Inspector.Bury],
// [Inspector.Delete], [Inspector.Cancel]. On dead letters: [Inspector.Revive],
// [Inspector.Purge], [Inspector.Edit]. Most of these also come for all jobs or dead
// letters of a queue, and for single payloads.
package inspect
