package core

// indexHeap is a binary heap of the numbers below a limit. Each number is in it at most once. If
// the result of less changes for a number in the heap, call fix for that number before any other
// method.
type indexHeap struct {
	less func(a, b int) bool
	// items is the heap. place has, for each number, its position in items, or -1 if the number is
	// not in the heap.
	items []int
	place []int
}

// newIndexHeap returns an empty heap for the numbers below n.
func newIndexHeap(n int, less func(a, b int) bool) indexHeap {
	h := indexHeap{less: less, items: make([]int, 0, n), place: make([]int, n)}
	for i := range h.place {
		h.place[i] = -1
	}
	return h
}

// first returns the least number by less, or -1 if the heap is empty.
func (h *indexHeap) first() int {
	if len(h.items) == 0 {
		return -1
	}
	return h.items[0]
}

// has reports whether the number is in the heap.
func (h *indexHeap) has(number int) bool { return h.place[number] >= 0 }

// put adds the number. It must not be in the heap.
func (h *indexHeap) put(number int) {
	h.items = append(h.items, number)
	h.place[number] = len(h.items) - 1
	h.up(len(h.items) - 1)
}

// remove removes the number, if it is in the heap.
func (h *indexHeap) remove(number int) {
	at := h.place[number]
	if at < 0 {
		return
	}
	last := len(h.items) - 1
	h.swap(at, last)
	h.items = h.items[:last]
	h.place[number] = -1
	if at < last {
		h.up(at)
		h.down(at)
	}
}

// fix restores the order after less has changed for one number, if it is in the heap.
func (h *indexHeap) fix(number int) {
	if at := h.place[number]; at >= 0 {
		h.up(at)
		h.down(h.place[number])
	}
}

func (h *indexHeap) up(at int) {
	for at > 0 {
		parent := (at - 1) / 2
		if !h.less(h.items[at], h.items[parent]) {
			return
		}
		h.swap(at, parent)
		at = parent
	}
}

func (h *indexHeap) down(at int) {
	for {
		child := 2*at + 1
		if child >= len(h.items) {
			return
		}
		if right := child + 1; right < len(h.items) && h.less(h.items[right], h.items[child]) {
			child = right
		}

		if !h.less(h.items[child], h.items[at]) {
			return
		}
		h.swap(at, child)
		at = child
	}
}

func (h *indexHeap) swap(a, b int) {
	h.items[a], h.items[b] = h.items[b], h.items[a]
	h.place[h.items[a]], h.place[h.items[b]] = a, b
}
