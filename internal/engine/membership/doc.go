// Package membership decides which shards a node works, by the list of the live nodes.
//
// Begin with [Members]. The engine announces the node and passes the store's answer, a list of
// nodes, to Share. Share calls the splitter if the list has changed, and returns which shards the
// node gains and loses. Every node computes the same assignment. While the lists of nodes differ,
// leases keep them apart. A shard that is newly this node's is gained at once. A shard that goes to
// another node is lost after an announce interval in which the list has not changed, or at once if
// this node drains.
//
// The package calls no store and starts no goroutine, and time is an argument. It logs changes of
// the list and of the assignment, and notifies the observer of them.
package membership
