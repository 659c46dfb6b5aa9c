package counting

import "sync/atomic"

// Sum is a [Counter] that an exporter reads. Counting costs one atomic addition. It begins at 0.
type Sum struct {
	n atomic.Int64
	// Padding, so that two sums do not share a cache line.
	_ [56]byte
}

// Add implements [Counter].
func (s *Sum) Add(n int) { s.n.Add(int64(n)) }

// Value returns what was added so far.
func (s *Sum) Value() int64 { return s.n.Load() }
