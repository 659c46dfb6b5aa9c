package logs

import (
	"sync"
	"time"
)

// Sums chooses which of many similar events to write. The first event of a key is written at once.
// After that, once in each window of time, the number of events since then and the last one are
// written. A key whose window passes without an event is forgotten. Sums keeps a bounded number of
// keys of each space. Events of further keys count for the key "". It is safe for concurrent use.
type Sums[E any] struct {
	window time.Duration
	most   int

	mu   sync.Mutex
	sums map[sumKey]*sum[E]
	keys map[string]int // by space
}

type sumKey struct{ space, key string }

type sum[E any] struct {
	since time.Time // when the window began
	count int       // events since then that were not written
	last  E
}

// Sum is the number of events of a key that were not written yet, and the last of them.
type Sum[E any] struct {
	Space, Key string
	Count      int
	Last       E
}

// NewSums returns a Sums with the given window. most is the largest number of keys of a space, not
// counting "". The caller has to bound the number of spaces.
func NewSums[E any](window time.Duration, most int) *Sums[E] {
	return &Sums[E]{window: window, most: most, sums: make(map[sumKey]*sum[E]), keys: make(map[string]int)}
}

// Add counts an event. It returns the key for which the event counts, and reports whether to write
// the event now.
func (s *Sums[E]) Add(now time.Time, space, key string, event E) (as string, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	one := s.sums[sumKey{space, key}]
	if one == nil && key != "" && s.keys[space] >= s.most {
		key = ""
		one = s.sums[sumKey{space, key}]
	}

	if one != nil {
		one.count++
		one.last = event
		return key, false
	}

	s.sums[sumKey{space, key}] = &sum[E]{since: now}
	if key != "" {
		s.keys[space]++
	}
	return key, true
}

// Due returns what to write now: the sums of the keys whose window is over. It forgets those of
// them that had no event.
func (s *Sums[E]) Due(now time.Time) (list []Sum[E]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.sums {
		switch {
		case now.Sub(one.since) < s.window:
		case one.count > 0:
			list = append(list, Sum[E]{Space: key.space, Key: key.key, Count: one.count, Last: one.last})
			*one = sum[E]{since: now}
		default:
			s.forget(key)
		}
	}
	return list
}

func (s *Sums[E]) forget(key sumKey) {
	delete(s.sums, key)
	if key.key == "" {
		return
	}
	if s.keys[key.space]--; s.keys[key.space] == 0 {
		delete(s.keys, key.space)
	}
}
