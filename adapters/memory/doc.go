// Package memory is a [ports.ShardStore] in the memory of the process: the embedded default, the
// store of unit tests, and the reference for other stores.
//
//	store := memory.New(memory.Options{})
//	client := skein.NewClient(store, skein.ClientOptions{})
//
// [New] makes a [Store] with [Options]. The store keeps every promise of package ports while the
// process runs. At the end of the process its jobs are lost. Handles from [Store.Open] share one
// backend, as several processes share a server.
//
// Each shard has a lock of its own, so calls on different shards don't wait for each other. A job
// costs a map entry, its payloads and a place in a list. A settled job leaves nothing behind.
package memory
