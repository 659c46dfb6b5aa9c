package dashboard

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/wrong"
)

// span has the values of a group that are known without reading its dead letters: their number, and
// when the first and the last was buried.
type span struct {
	group       string
	count       int64
	first, last time.Time
}

// recent counts the dead letters that were buried since a time, by group. If all of a group were,
// or none, its span is enough; only those of other groups have to be read.
type recent struct {
	since time.Time
	// whole has the groups whose spans are enough.
	whole map[string]bool
	// open is true if there are other groups, whose dead letters have to be read.
	open    bool
	byGroup map[string]int64
	sum     wrong.Deaths
}

// recentOf counts by spans. others is true if there may be dead letters of other groups.
func recentOf(since time.Time, spans []span, others bool) *recent {
	r := &recent{since: since, whole: make(map[string]bool, len(spans)), open: others, byGroup: map[string]int64{}}
	for _, s := range spans {
		switch {
		case s.last.Before(since):
		case s.first.Before(since):
			r.open = true
			continue
		default:
			r.add(s.group, s.count, s.first, s.last)
		}
		r.whole[s.group] = true
	}
	return r
}

func (r *recent) add(group string, n int64, first, last time.Time) {
	if r.sum.Count == 0 || first.Before(r.sum.First) {
		r.sum.First = first
	}
	if last.After(r.sum.Last) {
		r.sum.Last = last
	}
	r.sum.Count += int(n)
	r.byGroup[group] += n
}

// letter counts a dead letter, the newest first, and reports whether it and those behind it are too
// old.
func (r *recent) letter(group string, changed time.Time) (old bool) {
	if changed.Before(r.since) {
		return true
	}
	if !r.whole[group] {
		r.add(group, 1, changed, changed)
	}
	return false
}

// most returns the error that most of the counted dead letters have, and their number. Dead letters
// without one are not counted.
func (r *recent) most() (group string, count int64) {
	for name, n := range r.byGroup {
		if name == core.OtherGroup || name == core.BuriedByHand {
			continue
		}
		if n > count || n == count && name < group {
			group, count = name, n
		}
	}
	return group, count
}
