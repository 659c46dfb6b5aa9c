package webhook

import "sync"

// maxBusyIDs bounds the ids whose busy answers are counted.
const maxBusyIDs = 100_000

// busyCounts counts busy answers in a row, by id. Its zero value is ready, and it is safe for
// concurrent use. A process that starts begins with empty counts, since no store keeps them.
type busyCounts struct {
	mu     sync.Mutex
	counts map[string]int
}

// add counts a busy answer and returns how many of the id came in a row. Beyond most it begins anew
// and returns false.
func (b *busyCounts) add(id string, most int) (inRow int, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	inRow = b.counts[id] + 1
	if inRow > most {
		delete(b.counts, id)
		return inRow, false
	}

	if b.counts == nil {
		b.counts = map[string]int{}
	}
	if len(b.counts) >= maxBusyIDs && inRow == 1 {
		for other := range b.counts { // any one, whose count begins anew
			delete(b.counts, other)
			break
		}
	}
	b.counts[id] = inRow
	return inRow, true
}

// end forgets an id whose answer was not busy.
func (b *busyCounts) end(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.counts, id)
}
