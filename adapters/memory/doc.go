// Package memory is a [ports.ShardStore] in the memory of a process: the reference for
// other stores, the embedded default, and what unit tests use.
//
// It keeps every promise of package ports as long as the process runs; nothing
// survives its end. Handles from [Store.Open] share one backend, as several nodes share
// a server.
//
// Each shard has a lock of its own, so shards never wait for one another. A job
// costs a map entry, its payloads and a place in a list; a settled job leaves nothing
// behind.
package memory
