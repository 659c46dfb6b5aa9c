// Package execution runs the jobs of a batch and works out how they ended.
//
// Begin with [Batch], the jobs of one call of a handler: their outcomes, their contexts, what the
// handler settles in its transactions, and the settlements of all that. [Queue] is how the jobs of
// a queue run, and [Server] is what batches share. [Ends] keeps how jobs end until the store has
// answered their settlements.
//
// No function of this package calls a store, except those that a handler calls with a transaction.
// The engine decides when a batch starts, and sends its settlements.
//
//	batch.go, queue.go        a batch, its queue and its server
//	outcome.go, jobrun.go     outcomes; jobs of a batch one after another
//	context.go                a handler's context, how it ends, and handlers that outlast it
//	transaction.go, parts.go  settling in the handler's transaction: jobs, and payloads by themselves
//	attached.go               what the root keeps with a job; the Metas of its payloads
//	ends.go, results.go       how jobs ended, as the store confirms it; the log's and the hook's part
package execution
