package memory

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// historyKept is how long minutes are kept.
const historyKept = 24 * time.Hour

// history is what was counted for a queue, by minute.
type history struct {
	mu      sync.Mutex
	minutes []ports.MinuteStats // oldest first
}

// History implements [ports.Inspector].
func (s *Store) History(ctx context.Context, r ports.HistoryRequest) ([]ports.MinuteStats, error) {
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return nil, err
	}
	return q.history.between(r.From, r.To), nil
}

// add adds to the minute of now and drops those that are too old.
func (h *history) add(now core.Instant, s *core.Stats) {
	if *s == (core.Stats{}) {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	at, found := h.find(now.Minute())
	if !found {
		h.minutes = slices.Insert(h.minutes, at, ports.MinuteStats{At: now.Minute()})
	}
	h.minutes[at].Add(s)
	old, _ := h.find(now.Add(-historyKept).Minute())
	h.minutes = h.minutes[old:]
}

// find returns the position of the first minute that is not before at, and whether it
// starts then.
func (h *history) find(at core.Instant) (int, bool) {
	return slices.BinarySearchFunc(h.minutes, at, func(m ports.MinuteStats, at core.Instant) int {
		return cmp.Compare(m.At, at)
	})
}

// between copies the minutes from inclusive to exclusive; a to of 0 has no end.
func (h *history) between(from, to core.Instant) []ports.MinuteStats {
	h.mu.Lock()
	defer h.mu.Unlock()
	start, _ := h.find(from)
	end := len(h.minutes)
	if to != 0 {
		end, _ = h.find(to)
	}
	if start >= end {
		return nil
	}
	return slices.Clone(h.minutes[start:end])
}
