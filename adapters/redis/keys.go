package redis

import (
	"strconv"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A key of a shard. Operators' scripts declare the first keys, up to the numbers below.
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
	keyGroups
	keyLease
	keyCancels
	keyAside
	keySchedules
	keyTicks
	keyScheduleNames
	keyPast
	keyPastByTime
	keyResults
	keyOnce
	allKeys
)

// The number of first keys for scripts that change queued jobs, for scripts that change dead
// letters too, and for scripts that need all keys of jobs.
const (
	queueKeys = keyRetriesByCount + 1
	deadKeys  = keyGroups + 1
	jobKeys   = keyAside + 1
)

// keySuffixes are the names of the keys within a shard, the same as in lua/lib/shard.lua,
// lua/lib/schedules.lua, lua/lib/past.lua and lua/push/push.lua. There are also p: and an id, its payloads if they are
// many; d: and an id, those of its dead letter; q: and its key, those of a set-aside record; and g:
// and the name of a group, its dead letters by time.
var keySuffixes = [allKeys]string{
	"m", "j", "r", "w", "c", "i", "t", "rt", "ri", "rc", "x", "xt", "xi", "xm", "xg", "l", "k", "q", "s", "st", "sn",
	"o", "ot", "or", "on",
}

// channelSuffix is the name of the shard's channel for wake-ups.
const channelSuffix = "wake"

// base returns the beginning of the names of all the shard's keys. The braces put them into one
// slot of a Cluster. That of a queue's permits has no number. That of the zero shard is for the
// list of nodes.
func (s *Store) base(shard core.Shard) string {
	switch shard {
	case core.Shard{}:
		return s.prefix + "{/nodes}:" // no queue has a slash in its name
	case ports.PermitsOf(shard.Queue):
		return s.prefix + "{" + shard.Queue + "}:"
	}
	return s.prefix + "{" + shard.Queue + "/" + strconv.Itoa(shard.Index) + "}:"
}

// keyNames caches the names of shards' keys: making them took a tenth of a push. It is safe for
// concurrent use; the zero value is empty.
type keyNames struct {
	mu      sync.RWMutex
	byShard map[core.Shard]*[allKeys]any
}

// rememberedShards is the largest number of shards that keyNames caches. Callers may name any
// number of queues.
const rememberedShards = 1 << 14

// keys returns the names of all the shard's keys. Callers must not change them.
func (s *Store) keys(shard core.Shard) *[allKeys]any {
	names := &s.names
	names.mu.RLock()
	all := names.byShard[shard]
	names.mu.RUnlock()
	if all != nil {
		return all
	}

	all = new([allKeys]any)
	base := s.base(shard)
	for i, suffix := range keySuffixes {
		all[i] = base + suffix
	}

	names.mu.Lock()
	defer names.mu.Unlock()
	if names.byShard == nil || len(names.byShard) >= rememberedShards {
		names.byShard = make(map[core.Shard]*[allKeys]any)
	}
	names.byShard[shard] = all
	return all
}

// firstKeys returns the names of the shard's first n keys.
func (s *Store) firstKeys(shard core.Shard, n int) []any { return s.keys(shard)[:n:n] }

// someKeys returns the names of the shard's given keys.
func (s *Store) someKeys(shard core.Shard, which ...int) []any {
	all := s.keys(shard)
	some := make([]any, len(which))
	for i, k := range which {
		some[i] = all[k]
	}
	return some
}

// groupKey names the dead letters of a group by time.
func (s *Store) groupKey(shard core.Shard, group string) string { return s.base(shard) + "g:" + group }

func (s *Store) channel(shard core.Shard) string { return s.base(shard) + channelSuffix }

// queuesKey names the records of all queues.
func (s *Store) queuesKey() string { return s.prefix + "queues" }

// nodesKey names the announcements of nodes, and statusKey their status, each by owner. They are
// separate since every node reads the first at each announcement.
func (s *Store) nodesKey() string  { return s.base(core.Shard{}) + "n" }
func (s *Store) statusKey() string { return s.base(core.Shard{}) + "s" }

// auditKeys name the actions of operators: the actions by ID, and their times.
func (s *Store) auditKeys() []any {
	base := s.base(core.Shard{})
	return []any{base + "a", base + "at"}
}
