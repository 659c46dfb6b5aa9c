package logs

import (
	"sync"
	"time"
)

// Rate lets a bounded number of events of a key pass in a window, and counts the others. The
// caller has to bound the number of keys. It is safe for concurrent use.
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

// Held is how many events of a key were held back.
type Held struct {
	Key   string
	Count int
}

// NewRate returns a rate of most events of a key in a window.
func NewRate(window time.Duration, most int) *Rate {
	return &Rate{window: window, most: most, keys: make(map[string]*rate)}
}

// Pass reports whether to write an event of a key now; else it is counted.
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

// Due returns how many events were held back of each key whose window is over, and forgets them.
func (r *Rate) Due(now time.Time) []Held {
	return r.take(func(one *rate) bool { return now.Sub(one.since) >= r.window })
}

// Rest returns how many events were held back of each key, and forgets them.
func (r *Rate) Rest() []Held { return r.take(func(*rate) bool { return true }) }

func (r *Rate) take(over func(*rate) bool) (list []Held) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, one := range r.keys {
		if !over(one) {
			continue
		}
		if one.held > 0 {
			list = append(list, Held{key, one.held})
		}
		delete(r.keys, key)
	}
	return list
}
