package memory

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// history is the owners' counts of a queue, by minute, and their sums by day.
type history struct {
	mu      sync.Mutex
	records map[recordKey]core.Stats
	days    map[core.Instant]*dayCounts
	// pruned is the first minute that was kept when records were last removed. Records are kept for
	// an hour longer than they are listed, so that a clock that is set back hides nothing.
	pruned core.Instant
}

// dayCounts is the sum of the minutes of a day.
type dayCounts struct {
	core.Stats
	// open is after the last of its minutes that has lost records. These stay counted, so records of
	// minutes before open are ignored.
	open core.Instant
}

// recordKey identifies a record of a queue.
type recordKey struct {
	minute core.Instant
	owner  string
}

// Record implements [ports.Registry].
func (s *Store) Record(ctx context.Context, r ports.RecordRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := checkContext(ctx); err != nil {
		return err
	}

	s.b.mu.RLock()
	defer s.b.mu.RUnlock()
	now := s.b.now()
	for i := range r.Records {
		if q := s.b.queues[r.Records[i].Queue]; q != nil {
			q.history.record(r.Owner, &r.Records[i], now)
		}
	}
	return nil
}

// listedFrom returns the first minute that is listed at now.
func listedFrom(now core.Instant) core.Instant { return now.Minute().Add(-ports.HistoryKept) }

// takesRecord reports whether a record of a minute is taken at now: the minute is listed, or begins
// within an hour.
func takesRecord(minute, now core.Instant) bool {
	return minute >= listedFrom(now) && minute <= now.Add(time.Hour)
}

// record stores a record, and removes old ones.
func (h *history) record(owner string, r *ports.Record, now core.Instant) {
	if !takesRecord(r.Minute, now) {
		return
	}

	h.mu.Lock()
	defer h.mu.Unlock()
	h.prune(now)

	key := recordKey{r.Minute, owner}
	known := h.records[key]
	if r.Stats.Counted() <= known.Counted() {
		return
	}
	day := h.day(r.Minute.Day(), now)
	if r.Minute < day.open {
		return
	}

	if h.records == nil {
		h.records = make(map[recordKey]core.Stats)
	}
	h.records[key] = r.Stats
	day.Add(&r.Stats)
	day.Subtract(&known)
}

// prune removes the records of minutes that are no longer kept.
func (h *history) prune(now core.Instant) {
	kept := listedFrom(now).Add(-time.Hour)
	if kept == h.pruned {
		return
	}
	h.pruned = kept
	maps.DeleteFunc(h.records, func(k recordKey, _ core.Stats) bool {
		if k.minute >= kept {
			return false
		}
		if day := h.days[k.minute.Day()]; day != nil {
			day.open = max(day.open, k.minute+1)
		}
		return true
	})
}

// day returns the counts of a day. For a new one it may remove another day.
func (h *history) day(start, now core.Instant) *dayCounts {
	day := h.days[start]
	if day == nil {
		if h.days == nil {
			h.days = make(map[core.Instant]*dayCounts)
		}
		day = &dayCounts{}
		h.days[start] = day
		if len(h.days) > storekit.DaysStored {
			delete(h.days, storekit.FarthestDay(maps.Keys(h.days), now))
		}
	}
	return day
}

// History implements [ports.Inspector].
func (s *Store) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	if err := r.Validate(); err != nil {
		return ports.HistoryReply{}, err
	}
	q, err := s.b.queue(ctx, r.Queue)
	if err != nil {
		return ports.HistoryReply{}, err
	}

	sums := storekit.NewHistory(r, s.b.now())
	q.history.mu.Lock()
	defer q.history.mu.Unlock()
	if r.Step == ports.Day {
		for start, day := range q.history.days {
			sums.Add(start, &day.Stats)
		}
	} else {
		for key, stats := range q.history.records {
			sums.Add(key.minute, &stats)
		}
	}
	return ports.HistoryReply{Minutes: sums.List()}, nil
}
