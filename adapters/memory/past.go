package memory

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// past is what became of the ids of a shard: one record for each id, and one for each id with a mark
// of its own, which is listed as its markID. All are also listed by (DoneAt, id).
type past struct {
	byID   map[string]*core.Past
	byTime sorted[*core.Past]
	bytes  int64 // of all results
	// age is that of the last turn that has kept records.
	age time.Duration
}

// arrive sets the age of a shard to which records come before a turn has kept any.
func (l *past) arrive() {
	if l.age == 0 {
		l.age = core.ImportedKeepAge
	}
}

func placeOfPast(p *core.Past) place { return place{int64(p.DoneAt), p.ID} }

// keep records what became of a job. It replaces the former record of the id.
func (l *past) keep(p core.Past) {
	p.Result = slices.Clone(p.Result)
	if former := l.byID[p.ID]; former != nil {
		l.remove(former)
	}
	if l.byID == nil {
		l.byID = make(map[string]*core.Past)
	}
	l.byID[p.ID] = &p
	l.byTime.Insert(placeOfPast(&p), &p)
	l.bytes += int64(len(p.Result))
}

// markID returns the id under which the mark of an id is kept. No job has that id.
func markID(id string) string { return id + markEnd }

const markEnd = "\x00"

// isMark reports whether a mark is kept under an id.
func isMark(id string) bool { return strings.HasSuffix(id, markEnd) }

// raise raises the mark of an id.
func (l *past) raise(id string, m core.Mark, now core.Instant) {
	if !m.OK {
		return
	}
	key := markID(id)
	if former := l.byID[key]; former != nil {
		m = m.Raised(core.MarkAt(former.Score))
	}
	l.keep(core.Past{ID: key, DoneAt: now, Score: m.Score, Raises: true})
}

// bringIn adds a record of another queue.
func (l *past) bringIn(p core.Past) {
	l.arrive()
	stays, gone := core.ImportPast(l.byID[p.ID], &p)
	if gone != nil {
		l.bringInMark(*gone)
	}
	if stays == &p {
		l.keep(p)
	}
}

// bringInMark adds a mark of another queue, or that of a record that goes.
func (l *past) bringInMark(p core.Past) {
	l.arrive()
	p.ID = markID(p.ID)
	l.keep(core.ImportMark(l.byID[p.ID], p))
}

// mark returns the mark of an id.
func (l *past) mark(id string) core.Mark {
	return l.byID[id].Mark().Raised(l.byID[markID(id)].Mark())
}

// unmark removes the record and the mark of an id.
func (l *past) unmark(id string) {
	for _, key := range [...]string{id, markID(id)} {
		if p := l.byID[key]; p != nil {
			l.remove(p)
		}
	}
}

// addMarks sets the marks of claims.
func (l *past) addMarks(claims []core.Claim) {
	for i := range claims {
		claims[i].Mark = l.mark(claims[i].ID)
	}
}

func (l *past) remove(p *core.Past) {
	delete(l.byID, p.ID)
	if len(l.byID) == 0 {
		l.byID = nil // maps don't shrink
	}
	l.byTime.Delete(placeOfPast(p))
	l.bytes -= int64(len(p.Result))
}

// prune removes the oldest records that are not kept. A turn that keeps none removes them by the age
// of the last turn that did.
func (l *past) prune(keep core.KeepPast, now core.Instant) {
	if keep.Any() {
		l.age = keep.Age
	} else {
		keep.Age = l.age
	}

	for range core.MaxPastRemoved {
		first, ok := l.byTime.First()
		if !ok || !keep.Removes(first.DoneAt, int64(l.byTime.Len()), l.bytes, now) {
			return
		}
		l.remove(first)
	}
}

// Past implements [ports.Inspector].
func (s *Store) Past(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	q, shards, err := s.b.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.PastPage{}, err
	}

	p := storekit.NewPager[ports.PastView](r, false)
	for _, shard := range shards {
		sh := q.shards[shard.Index]
		sh.mu.Lock()
		gather(p, &sh.past.byTime, func(p *core.Past) ports.PastView {
			view := ports.PastView{Past: *p, ResultBytes: len(p.Result)}
			view.Result = nil
			return view
		})
		sh.mu.Unlock()
	}

	var page ports.PastPage
	page.Past, page.Next = p.Page()
	page.Past = slices.DeleteFunc(page.Past, func(p ports.PastView) bool { return isMark(p.ID) != r.Marks })
	for i := range page.Past {
		page.Past[i].ID = strings.TrimSuffix(page.Past[i].ID, markEnd)
	}
	return page, nil
}
