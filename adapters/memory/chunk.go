package memory

import "slices"

// chunkLen is how many items a chunk has room for: 2 KB of pointers.
const chunkLen = 63

// chunk is a part of a sorted list, with room at either end. Items outside the live ones are zero,
// so that they keep nothing from being collected.
type chunk[V any] struct {
	items    [chunkLen]item[V]
	from, to int
}

func (c *chunk[V]) len() int { return c.to - c.from }

func (c *chunk[V]) live() []item[V] { return c.items[c.from:c.to] }

func (c *chunk[V]) first() place { return c.items[c.from].place }

// find returns the position among the live items where a place is or belongs, and whether the
// place exists.
func (c *chunk[V]) find(at place) (int, bool) {
	live := c.live()
	if n := len(live); n > 0 && live[n-1].compare(at) < 0 {
		return n, false
	}
	if len(live) > 0 && live[0].place == at {
		return 0, true
	}
	return slices.BinarySearchFunc(live, at, func(it item[V], at place) int {
		return it.compare(at)
	})
}

// insert puts an item before the n-th of a chunk that has room. It moves the shorter
// side if there is a choice.
func (c *chunk[V]) insert(n int, it item[V]) {
	at := c.from + n
	if c.to < chunkLen && (c.from == 0 || n >= c.len()/2) {
		copy(c.items[at+1:c.to+1], c.items[at:c.to])
		c.to++
	} else {
		copy(c.items[c.from-1:at-1], c.items[c.from:at])
		c.from--
		at--
	}
	c.items[at] = it
}

// remove removes the n-th item, moving the shorter side.
func (c *chunk[V]) remove(n int) {
	at := c.from + n
	if n < c.len()/2 || n == 0 {
		copy(c.items[c.from+1:at+1], c.items[c.from:at])
		c.items[c.from] = item[V]{}
		c.from++
		return
	}
	copy(c.items[at:c.to-1], c.items[at+1:c.to])
	c.to--
	c.items[c.to] = item[V]{}
}

// split moves the upper half of a full chunk into an empty one.
func (c *chunk[V]) split(upper *chunk[V]) {
	moved := c.live()[c.len()/2:]
	upper.to = copy(upper.items[:], moved)
	c.to -= len(moved)
	clear(moved)
}

// prepend moves all items of a chunk, which must fit, in front of this one's.
func (c *chunk[V]) prepend(lower *chunk[V]) {
	moved := lower.live()
	all := append(slices.Clone(moved), c.live()...)
	clear(c.items[:])
	c.from, c.to = 0, copy(c.items[:], all)
	clear(moved)
}
