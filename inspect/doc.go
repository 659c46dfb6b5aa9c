// Package inspect reads and changes the content of a store: it lists jobs and dead letters, pauses
// queues, cancels, deletes, buries, revives and edits.
//
// An [Inspector] needs only the store. It needs neither a client nor a server nor the type of the
// payloads, which are bytes here:
//
//	inspector := inspect.New(store, inspect.Options{})
//
//	stats, err := inspector.Stats(ctx) // of all queues
//
//	for letter, err := range inspector.Morgue(ctx, "orders", inspect.ListOptions{Payloads: 1}) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(letter.ID, letter.LastError)
//	}
//
//	result, err := inspector.Revive(ctx, "orders", inspect.DeadIDs("order-42"))
//
// # Where to begin
//
//   - [Inspector] has all methods; [New] makes one.
//   - [ListOptions] are the order, the start and the filters of a list.
//   - [JobSelection] and [DeadLetterSelection] choose what an action changes.
//   - [BulkOptions] are the limits, the progress and the continuation of an action on many entries.
//
// # Reading
//
//   - The store: [Inspector.Ping], [Inspector.Checks], [Inspector.Nodes], [Inspector.Actions].
//   - Queues: [Inspector.Queues], [Inspector.Stats], [Inspector.Settings], [Inspector.History],
//     [Inspector.Groups] of dead letters.
//   - The rate of a queue: [Inspector.Rate], [Inspector.RateWaits].
//   - Lists: [Inspector.Jobs], [Inspector.Claimed], [Inspector.Morgue], [Inspector.Quarantined].
//   - One id: [Inspector.Find], [Inspector.Payloads], [Inspector.Why], [Inspector.Settled].
//   - Tracked ids of a queue: [Inspector.Tracked].
//   - Schedules: [Inspector.Schedules], [Inspector.ScheduleNames], [Inspector.Schedule],
//     [Inspector.LateTicks].
//
// If a part of the store can't be reached, the result of the other parts comes with a
// *[PartialError].
//
// # Changing
//
//   - A queue: [Inspector.Pause], [Inspector.Resume], [Inspector.SetMerge],
//     [Inspector.Configure], [Inspector.Forget], [Inspector.Recount]. Its rate:
//     [Inspector.StopRate], [Inspector.ResumeRate].
//   - Jobs: [Inspector.RunNow], [Inspector.Release], [Inspector.Bury], [Inspector.Delete],
//     [Inspector.Cancel].
//   - Dead letters: [Inspector.Revive], [Inspector.Purge], [Inspector.Edit].
//   - Unreadable records: [Inspector.Discard].
//   - Tracked ids: [Inspector.Track], [Inspector.Untrack].
//   - Schedules: [Inspector.PauseSchedules], [Inspector.ResumeSchedules], [Inspector.RunSchedules],
//     [Inspector.EditSchedules], [Inspector.Backfill], [Inspector.RemoveSchedules].
//   - Servers: [Inspector.Drain].
//
// An action on jobs or dead letters gets a selection: ids, payloads, or all entries of a queue that
// match. Each action is logged, together with the actor of [WithActor]. [Inspector.Push] pushes
// without the options of a queue, and is no action.
//
// [Inspector.Move] and [Inspector.MoveMorgue] move jobs and dead letters to another queue, also of
// another store, given as a [Target]. [Inspector.Export] and
// [Inspector.Import] move a morgue to another store. [WriteDeadLetters] and [ReadDeadLetters] write
// and read its file.
package inspect
