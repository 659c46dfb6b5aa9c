package counting

import "sync/atomic"

// Sum is a [Counter] that its exporter reads, so that counting costs one addition. It begins at 0.
type Sum struct {
	n atomic.Int64
	// Padding, so that it does not slow down its neighbours in memory.
	_ [56]byte
}

// Add implements [Counter].
func (s *Sum) Add(n int) { s.n.Add(int64(n)) }

// Value returns what was added so far.
func (s *Sum) Value() int64 { return s.n.Load() }
