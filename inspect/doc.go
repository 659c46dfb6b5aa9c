// Package inspect shows what is in a store and lets an operator act on it: list
// jobs and dead letters, pause a queue, cancel, delete, bury, revive and edit.
//
// An [Inspector] needs the store and the name of a queue. It needs neither client
// nor server nor the type of the payloads, which are bytes here:
//
//	inspector := inspect.New(store, inspect.Options{})
//	stats, err := inspector.Stats(ctx) // of all queues
//
// Looking: [Inspector.Ping], [Inspector.Checks], [Inspector.Queues], [Inspector.Nodes], [Inspector.Stats],
// [Inspector.History], [Inspector.Find], [Inspector.Why], [Inspector.Groups] of dead letters, and the lists [Inspector.Jobs],
// [Inspector.Claimed] and [Inspector.Morgue]. Where a part of the store is away, what the rest has comes with a *[PartialError].
//
// Acting on a queue: [Inspector.Pause], [Inspector.Resume], [Inspector.Forget],
// [Inspector.Recount], [Inspector.Discard] of what [Inspector.Quarantined] lists. On jobs: [Inspector.RunNow], [Inspector.Bury],
// [Inspector.Delete], [Inspector.DeleteAll], [Inspector.Cancel]. On dead letters: [Inspector.Revive],
// [Inspector.Purge], [Inspector.Edit]. Most of these also come for all jobs or dead
// letters of a queue, with [BulkOptions] that bound them and let them go on elsewhere, and for single payloads.
// On servers: [Inspector.Drain].
//
// [Inspector.Export] and [Inspector.Import] move a morgue to another store; [WriteDeadLetters] and [ReadDeadLetters] are
// its file. Each action is in the log, with who acted where [WithActor] says so.
package inspect
