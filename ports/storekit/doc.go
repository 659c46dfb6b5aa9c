// Package storekit is what every [ports.ShardStore] needs beside its own database:
// the reader of wake-ups ([Subscriber]), one page from many shards ([Pager]), the
// entries of a push by shard ([Route], [CutShard]), a turn's limits ([BudgetOf]) and
// the errors of the contract in their usual words ([LeaseLost], [NoSuchShard] …).
// [Intercept] puts one function around every call of a store, to fail, count,
// delay, repeat or change it.
//
// Nothing here is required of a store: package ports is the contract and package
// conformance the judge. A store that uses storekit writes less, and fails in the
// same words as the others.
package storekit
