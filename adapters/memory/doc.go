// Package memory is a ShardStore that lives in the process: the reference that
// other stores are measured by, the embedded default, and what unit tests use.
//
// It keeps every promise of package ports within the process and none beyond:
// nothing survives its end. Handles from Store.Open share one backend as
// several nodes share a server.
//
// Each shard has a lock of its own, so shards never wait for one another. A job
// costs a map entry, its payloads and a place in a list; a job that is settled
// leaves nothing behind.
package memory
