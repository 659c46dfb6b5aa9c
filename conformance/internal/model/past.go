package model

import (
	"cmp"
	"context"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// record keeps what became of a settled job.
func (s *shard) record(settled *core.Settlement, now core.Instant) {
	if settled.Past != nil {
		s.past[settled.ID] = settled.Past.Stored(settled.ID, now)
	}
}

// raise raises the mark of an id. The record of a mark has the id with a NUL.
func (s *shard) raise(id string, m core.Mark, now core.Instant) {
	if !m.OK {
		return
	}
	key := id + "\x00"
	if former, ok := s.past[key]; ok {
		m = m.Raised(core.MarkAt(former.Score))
	}
	s.past[key] = core.Past{ID: key, DoneAt: now, Score: m.Score, Raises: true}
}

// mark returns the mark of an id.
func (s *shard) mark(id string) (m core.Mark) {
	m = s.pastMark(id)
	if p, ok := s.past[id+"\x00"]; ok {
		m = m.Raised(core.MarkAt(p.Score))
	}
	return m
}

// bringInPast adds a record of another queue.
func (s *shard) bringInPast(p core.Past) {
	existing, ok := s.past[p.ID]
	if !ok || p.DoneAt > existing.DoneAt {
		s.past[p.ID] = p
	}

	// No mark is lost with the record that goes.
	for _, one := range []core.Past{existing, p} {
		if one.Raises && !s.pastMark(p.ID).Covers(one.Score) {
			s.bringInMark(p.ID, one.Score, one.DoneAt)
		}
	}
}

// bringInMark adds a mark that another queue kept beside its records.
func (s *shard) bringInMark(id string, score float64, at core.Instant) {
	key := id + "\x00"
	if existing, ok := s.past[key]; ok {
		score, at = max(score, existing.Score), max(at, existing.DoneAt)
	}
	s.past[key] = core.Past{ID: key, DoneAt: at, Score: core.NormalScore(score), Raises: true}
}

// pastMark returns the mark of the record of an id.
func (s *shard) pastMark(id string) core.Mark {
	if p, ok := s.past[id]; ok && p.Raises {
		return core.MarkAt(p.Score)
	}
	return core.Mark{}
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
		for id, p := range s.past {
			key, isMark := strings.CutSuffix(id, "\x00")
			if isMark != r.Marks {
				continue
			}
			view := ports.PastView{Past: p, ResultBytes: len(p.Result)}
			view.ID = key
			view.Result = nil
			all = append(all, view)
		}
	}

	page, next := pageOf(all, r, false, func(v ports.PastView) ports.Cursor {
		return ports.Cursor{Key: int64(v.DoneAt), ID: v.ID}
	})
	return ports.PastPage{Past: page, Next: next}, nil
}
