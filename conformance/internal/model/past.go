package model

import (
	"cmp"
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// record keeps what became of a settled job.
func (s *shard) record(settled *core.Settlement, now core.Instant) {
	if settled.Past != nil {
		s.past[settled.ID] = settled.Past.Stored(settled.ID, now)
	}
}

// prunePast removes the records of a shard that are not kept, the oldest first. A turn that keeps
// none removes them by the age of the last turn that did.
func (s *shard) prunePast(keep core.KeepPast, now core.Instant) {
	if keep.Any() {
		s.pastAge = keep.Age
	}
	keep.Age = s.pastAge

	for i, p := range sorted(s.past, byDoneAt) {
		var bytes int64
		for _, p := range s.past {
			bytes += int64(len(p.Result))
		}
		if i == core.MaxPastRemoved || !keep.Removes(p.DoneAt, int64(len(s.past)), bytes, now) {
			return
		}
		delete(s.past, p.ID)
	}
}

func byDoneAt(a, b core.Past) int {
	return cmp.Or(cmp.Compare(a.DoneAt, b.DoneAt), cmp.Compare(a.ID, b.ID))
}

// Past implements ports.Inspector.
func (m *Store) Past(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	_, shards, err := m.listed(ctx, &r, r.Validate())
	if err != nil {
		return ports.PastPage{}, err
	}

	var all []ports.PastView
	for _, s := range shards {
		for _, p := range s.past {
			view := ports.PastView{Past: p, ResultBytes: len(p.Result)}
			view.Result = nil
			all = append(all, view)
		}
	}

	page, next := pageOf(all, r, false, func(v ports.PastView) ports.Cursor {
		return ports.Cursor{Key: int64(v.DoneAt), ID: v.ID}
	})
	return ports.PastPage{Past: page, Next: next}, nil
}
