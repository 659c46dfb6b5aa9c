package logs

import (
	"sync"
	"time"
)

// Rate lets a bounded number of events of each key pass in a window of time, and counts the others.
// The caller has to bound the number of keys. It is safe for concurrent use.
type Rate struct {
	window time.Duration
	most   int

	mu   sync.Mutex
	keys map[string]*rate
}

type rate struct {
	since        time.Time // when the window began
	passed, held int
}

// Held is the number of events of a key that did not pass.
type Held struct {
	Key   string
	Count int
}

// NewRate returns a Rate that lets at most the number most of events of a key pass in a window.
func NewRate(window time.Duration, most int) *Rate {
	return &Rate{window: window, most: most, keys: make(map[string]*rate)}
}

// Pass reports whether to write an event of a key now. If not, the event is counted.
func (r *Rate) Pass(now time.Time, key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()

	one := r.keys[key]
	if one == nil {
		one = &rate{since: now}
		r.keys[key] = one
	}

	if now.Sub(one.since) >= r.window {
		one.since, one.passed = now, 0
	}
	if one.passed >= r.most {
		one.held++
		return false
	}

	one.passed++
	return true
}

// Due returns the counts of the keys whose window is over, and forgets these keys.
func (r *Rate) Due(now time.Time) (list []Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, one := range r.keys {
		if now.Sub(one.since) < r.window {
			continue
		}
		if one.held > 0 {
			list = append(list, Held{key, one.held})
		}
		delete(r.keys, key)
	}
	return list
}
