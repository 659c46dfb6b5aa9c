package logs

import (
	"sync"
	"time"
)

// Once lets one event of each key pass in a window of time. It remembers a bounded number of keys.
// While it remembers that number, no event of another key passes. It is safe for concurrent use.
type Once struct {
	window time.Duration
	most   int

	mu   sync.Mutex
	keys map[string]time.Time
}

// NewOnce returns a Once with the given window; most is the largest number of keys.
func NewOnce(window time.Duration, most int) *Once {
	return &Once{window: window, most: most, keys: make(map[string]time.Time)}
}

// Pass reports whether to write an event of a key now.
func (o *Once) Pass(now time.Time, key string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()

	if last, known := o.keys[key]; known && now.Sub(last) < o.window {
		return false
	}

	if len(o.keys) >= o.most {
		for k, last := range o.keys {
			if now.Sub(last) >= o.window {
				delete(o.keys, k)
			}
		}
	}
	if len(o.keys) >= o.most {
		return false
	}

	o.keys[key] = now
	return true
}
