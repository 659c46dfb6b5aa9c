// Package report logs what becomes of jobs and of calls to the store, notifies the observer of the
// store's failures, and calls the hook of burials.
//
// Begin with [Jobs], the log of jobs. The engine makes an [Event] of each job that failed, and Jobs
// decides which events become lines, and which are only counted. [Outages] does the same for calls
// of the store. Each loop of a server reports to its [Loop] there how its calls ended. [Hooks]
// calls the hook for each [Buried], beside the work.
//
// Lines that need the state of the server or of a shard are where that state is, in package engine.
// No function of this package calls a store.
package report
