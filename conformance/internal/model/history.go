package model

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// recordKey identifies a record of a queue.
type recordKey struct {
	minute core.Instant
	owner  string
}

// Record implements ports.Registry.
func (m *Store) Record(ctx context.Context, r ports.RecordRequest) error {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}

	for _, one := range r.Records {
		q, ok := m.queues[one.Queue]
		if !ok || one.Minute < m.keptFrom() || one.Minute > m.Now().Add(time.Hour) {
			continue
		}

		key := recordKey{one.Minute, r.Owner}
		if known := q.records[key]; one.Stats.Counted() > known.Counted() {
			q.records[key] = one.Stats
		}
	}
	return nil
}

// keptFrom returns the first minute that is kept.
func (m *Store) keptFrom() core.Instant { return m.Now().Minute().Add(-ports.HistoryKept) }

// History implements ports.Inspector.
func (m *Store) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.HistoryReply{}, err
	}
	q, err := m.queue(ctx, r.Queue)
	if err != nil {
		return ports.HistoryReply{}, err
	}

	var list []ports.MinuteStats
	// The model keeps all records, so a day is the sum of its minutes.
	from := max(r.From, m.keptFrom())
	if r.Step == ports.Day {
		from = max(max(0, r.From).Day(), m.Now().Day().Add(-ports.DaysKept*ports.Day))
	}
	for key, stats := range q.records {
		at := r.StepOf(key.minute)
		start := key.minute
		if r.Step == ports.Day {
			start = at
		}
		if start < from || r.To != 0 && start >= r.To {
			continue
		}

		i := slices.IndexFunc(list, func(s ports.MinuteStats) bool { return s.At == at })
		if i < 0 {
			i = len(list)
			list = append(list, ports.MinuteStats{At: at})
		}
		list[i].Add(&stats)
	}

	slices.SortFunc(list, func(a, b ports.MinuteStats) int { return cmp.Compare(a.At, b.At) })
	return ports.HistoryReply{Minutes: list}, nil
}
