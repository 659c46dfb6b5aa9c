package memory

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// place is where a value stands in a list: by key, then by id.
type place ports.Cursor

func (p place) compare(q place) int {
	if c := cmp.Compare(p.Key, q.Key); c != 0 {
		return c
	}
	return strings.Compare(p.ID, q.ID)
}

type item[V any] struct {
	place
	value V
}

// sorted is a list of values in order of their places, each place once. The zero value is empty.
// Changes at either end take constant time and, once the list has grown, no memory. Others take
// two binary searches and a short move.
//
// It is a list of chunks. Unlike a tree or a skip list it has no node for each value, and it reads
// memory in order, as claims mostly do.
type sorted[V any] struct {
	chunks []*chunk[V]
	size   int
	spare  *chunk[V]
}

// Len returns the number of values.
func (l *sorted[V]) Len() int { return l.size }

// First returns the first value; ok is false if the list is empty.
func (l *sorted[V]) First() (v V, ok bool) {
	if l.size == 0 {
		return v, false
	}
	return l.chunks[0].live()[0].value, true
}

// Last returns the last value; ok is false if the list is empty.
func (l *sorted[V]) Last() (v V, ok bool) {
	if l.size == 0 {
		return v, false
	}
	last := l.chunks[len(l.chunks)-1].live()
	return last[len(last)-1].value, true
}

// CountTo counts the values whose key is at most the given one, up to a limit.
func (l *sorted[V]) CountTo(key int64, limit int) int {
	n := 0
	for _, c := range l.chunks {
		live := c.live()
		for i := range live {
			if n == limit || live[i].Key > key {
				return n
			}
			n++
		}
	}
	return n
}

// CountFrom counts the values whose key is at least the given one.
func (l *sorted[V]) CountFrom(key int64) int {
	n := 0
	for _, c := range slices.Backward(l.chunks) {
		live := c.live()
		at, _ := slices.BinarySearchFunc(live, key, func(it item[V], key int64) int { return cmp.Compare(it.Key, key) })
		n += len(live) - at
		if at > 0 {
			break
		}
	}
	return n
}

// Insert adds a value at a place that is free.
func (l *sorted[V]) Insert(at place, v V) {
	if len(l.chunks) == 0 {
		l.chunks = append(l.chunks, l.newChunk())
	}

	i := l.chunkAt(at)
	c := l.chunks[i]
	n, _ := c.find(at)
	tail := i == len(l.chunks)-1 && n == c.len()

	switch {
	case tail && c.to == chunkLen:
		c, n = l.newChunk(), 0
		l.chunks = append(l.chunks, c)
	case c.len() == chunkLen:
		upper := l.newChunk()
		c.split(upper)
		l.chunks = slices.Insert(l.chunks, i+1, upper)
		if n > c.len() {
			c, n = upper, n-c.len()
		}
	}

	c.insert(n, item[V]{at, v})
	l.size++
}

// Delete removes the value at a place and reports whether there was a value.
func (l *sorted[V]) Delete(at place) bool {
	if l.size == 0 {
		return false
	}
	i := l.chunkAt(at)
	n, found := l.chunks[i].find(at)
	if !found {
		return false
	}
	l.chunks[i].remove(n)
	l.size--
	l.tidy(i)
	return true
}

// Scan yields the items from a start on, in either direction. The list must not change
// meanwhile.
func (l *sorted[V]) Scan(start storekit.Start, descending bool) iter.Seq[item[V]] {
	if descending {
		return l.descend(start)
	}
	return l.ascend(start)
}

func (l *sorted[V]) ascend(start storekit.Start) iter.Seq[item[V]] {
	return func(yield func(item[V]) bool) {
		if l.size == 0 {
			return
		}

		i, n := 0, 0
		if start.Behind {
			i = l.chunkAt(place(start.At))
			var found bool
			if n, found = l.chunks[i].find(place(start.At)); found && !start.Inclusive {
				n++
			}
		}

		for ; i < len(l.chunks); i, n = i+1, 0 {
			for _, it := range l.chunks[i].live()[n:] {
				if !yield(it) {
					return
				}
			}
		}
	}
}

func (l *sorted[V]) descend(start storekit.Start) iter.Seq[item[V]] {
	return func(yield func(item[V]) bool) {
		if l.size == 0 {
			return
		}

		i := len(l.chunks) - 1
		n := l.chunks[i].len()
		if start.Behind {
			i = l.chunkAt(place(start.At))
			var found bool
			if n, found = l.chunks[i].find(place(start.At)); found && start.Inclusive {
				n++
			}
		}

		for {
			for _, it := range slices.Backward(l.chunks[i].live()[:n]) {
				if !yield(it) {
					return
				}
			}
			if i--; i < 0 {
				return
			}
			n = l.chunks[i].len()
		}
	}
}

// chunkAt returns the position of the chunk where a place belongs: the last that does
// not start after it, or the first. It tries the ends before it searches.
func (l *sorted[V]) chunkAt(at place) int {
	last := len(l.chunks) - 1
	if last == 0 || at.compare(l.chunks[1].first()) < 0 {
		return 0
	}
	if at.compare(l.chunks[last].first()) >= 0 {
		return last
	}

	i, found := slices.BinarySearchFunc(l.chunks, at, func(c *chunk[V], at place) int {
		return c.first().compare(at)
	})
	if found {
		return i
	}
	return i - 1
}

// tidy drops an empty chunk, unless it is the only one, and joins a nearly empty chunk with a
// nearly empty neighbour, so that removals leave no small chunks.
func (l *sorted[V]) tidy(i int) {
	c := l.chunks[i]
	switch {
	case c.len() == 0 && len(l.chunks) == 1:
		c.from, c.to = 0, 0
	case c.len() == 0:
		l.drop(i)
	case i > 0 && l.nearlyEmpty(i-1, i):
		l.join(i - 1)
	case i+1 < len(l.chunks) && l.nearlyEmpty(i, i+1):
		l.join(i)
	}
}

func (l *sorted[V]) nearlyEmpty(i, j int) bool {
	return l.chunks[i].len()+l.chunks[j].len() <= chunkLen/2
}

// join moves a chunk into the next.
func (l *sorted[V]) join(i int) {
	l.chunks[i+1].prepend(l.chunks[i])
	l.drop(i)
}

// drop removes an empty chunk and keeps it as the spare one.
func (l *sorted[V]) drop(i int) {
	c := l.chunks[i]
	c.from, c.to = 0, 0
	l.spare = c
	if i == 0 {
		l.chunks[0] = nil
		l.chunks = l.chunks[1:]
		return
	}
	l.chunks = slices.Delete(l.chunks, i, i+1)
}

func (l *sorted[V]) newChunk() *chunk[V] {
	if c := l.spare; c != nil {
		l.spare = nil
		return c
	}
	return new(chunk[V])
}
