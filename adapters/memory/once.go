package memory

import "github.com/skeinq/skein/core"

// once is what a shard remembers of entries with OnceIn: when the time of each ends. All are also
// listed by that time.
type once struct {
	until  map[core.OnceKey]core.Instant
	byTime sorted[core.OnceKey]
}

func placeOfOnce(key core.OnceKey, until core.Instant) place {
	return place{int64(until), string(key[:])}
}

// accept reports whether an entry with OnceIn is no repeat, and then remembers it.
func (l *once) accept(e *core.Entry, stamped bool, now core.Instant) bool {
	key := e.OnceKey(stamped)
	former, found := l.until[key]
	if core.Repeats(former, now) {
		return false
	}

	if found {
		l.byTime.Delete(placeOfOnce(key, former))
	}
	if l.until == nil {
		l.until = make(map[core.OnceKey]core.Instant)
	}
	until := e.OnceUntil(now)
	l.until[key] = until
	l.byTime.Insert(placeOfOnce(key, until), key)
	return true
}

// prune removes the first entries whose time has ended.
func (l *once) prune(now core.Instant) {
	for range core.MaxOnceRemoved {
		key, ok := l.byTime.First()
		if !ok || core.Repeats(l.until[key], now) {
			return
		}
		l.byTime.Delete(placeOfOnce(key, l.until[key]))
		delete(l.until, key)
		if len(l.until) == 0 {
			l.until = nil // maps don't shrink
		}
	}
}
