package redis

import (
	"strconv"

	"github.com/skeinq/skein/core"
)

// A key of a shard, by its place in what every script that has the prelude
// calls KEYS. A script is given the first so many of them.
const (
	keyMeta = iota
	keyJobs
	keyReady
	keyParked
	keyClaims
	keyByID
	keyMetas
	keyRetriesByTime
	keyRetriesByID
	keyRetriesByCount
	keyDead
	keyDeadByTime
	keyDeadByID
	keyDeadMetas
	keyLease
	keyCancels
	keyHistory
	allKeys
)

// How many keys the scripts that change queued jobs, and those that change dead
// ones too, are given.
const (
	pushKeys  = keyMetas + 1
	queueKeys = keyRetriesByCount + 1
	deadKeys  = keyDeadMetas + 1
)

// keySuffixes are the names of the keys within a shard. That of meta has one
// letter, which the prelude replaces to name the keys of an id: p: and the id are
// its payloads if they are many, d: and the id those of its dead letter.
var keySuffixes = [allKeys]string{
	"m", "j", "r", "w", "c", "i", "t", "rt", "ri", "rc", "x", "xt", "xi", "xm", "l", "k", "h",
}

// channelSuffix is the name of the shard's channel for wake-ups.
const channelSuffix = "wake"

// base is what the names of all the shard's keys begin with; the braces make it
// one slot of a Cluster.
func (s *Store) base(shard core.Shard) string {
	return s.prefix + "{" + shard.Queue + "/" + strconv.Itoa(shard.Index) + "}:"
}

// firstKeys are the names of the shard's first n keys.
func (s *Store) firstKeys(shard core.Shard, n int) []string {
	base := s.base(shard)
	keys := make([]string, n)
	for i := range keys {
		keys[i] = base + keySuffixes[i]
	}
	return keys
}

// someKeys are the names of the shard's given keys.
func (s *Store) someKeys(shard core.Shard, which ...int) []string {
	base := s.base(shard)
	keys := make([]string, len(which))
	for i, k := range which {
		keys[i] = base + keySuffixes[k]
	}
	return keys
}

func (s *Store) channel(shard core.Shard) string { return s.base(shard) + channelSuffix }

// queuesKey and nodesKey name the records of all queues and nodes.
func (s *Store) queuesKey() string { return s.prefix + "queues" }
func (s *Store) nodesKey() string  { return s.prefix + "nodes" }
