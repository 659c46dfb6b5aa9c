// Package storekit is a set of tools for authors of a [ports.ShardStore].
//
//	// Push stores the entries shard by shard.
//	for list := storekit.Route(nil, r.Entries, r.Shards); len(list) > 0; {
//		var shard []storekit.Routed
//		shard, list = storekit.CutShard(list)
//		if err := s.store(ctx, r, shard); err != nil {
//			return reply, storekit.NotStored(append(shard, list...), err)
//		}
//	}
//
// # Where to begin
//
//   - [Subscriber] is one receiver of wake-ups.
//   - [Pager] merges the entries of many shards into one page of a list.
//   - [SharedExchanges] sends small requests of several callers in one exchange.
//   - [Routed] is an entry of a push with its shard; [Route] and [CutShard] group entries by shard.
//
// [LeaseLost], [NoSuchShard] and others return the errors of the contract with their usual texts.
// [Intercept] calls one function in place of every call of a store. The function can fail, count,
// delay, repeat or change the call.
//
// # What is promised
//
// Until version 1 a minor release may change or remove names of this package; the changelog lists
// them. A patch release does not. A store can copy what it needs.
//
// A store need not use this package: package ports is the contract, and package conformance tests
// it. A store that uses storekit has less code, and the same error texts as other stores.
package storekit
