// Package redis is a ShardStore on Redis 7.0 or later, or Valkey: standalone,
// behind Sentinel, or a Cluster.
//
// Every change of state is one Lua script on one shard, whose keys share a hash
// tag, so that a queue spreads over a Cluster by its shards and a turn costs one
// round trip. docs/redis.md says what Redis can lose, what its errors mean here,
// and which rights a user needs.
package redis
