package core_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
)

// rule is the order of a scheduler as its text reads, by looking at every shard.
type rule interface {
	// pick chooses among the shards that are due. active are these, and those that were chosen
	// and whose heads were not set since.
	pick(due, active []int) core.Choice
	ran(ok bool)
	charge(index, n int, active bool)
}

// naivePool is a HeadScheduler's contract about heads, without a heap.
type naivePool struct {
	rule
	heads []core.Head
	// due are the shards whose heads were found due, taken those that were chosen, since
	// their heads were set.
	due, taken []bool
}

func newNaivePool(shards int, r rule) *naivePool {
	return &naivePool{r, make([]core.Head, shards), make([]bool, shards), make([]bool, shards)}
}

func (p *naivePool) setHead(index int, h core.Head) {
	p.heads[index], p.due[index], p.taken[index] = h, false, false
}

func (p *naivePool) choose(now core.Instant) core.Choice {
	var due, active []int
	for i, h := range p.heads {
		p.due[i] = !p.taken[i] && (p.due[i] || h.DueBy(now))
		if p.due[i] {
			due = append(due, i)
		}
		if p.due[i] || p.taken[i] {
			active = append(active, i)
		}
	}
	choice := p.pick(due, active)
	if choice.Index >= 0 {
		p.due[choice.Index], p.taken[choice.Index] = false, true
	}
	return choice
}

func (p *naivePool) nextDue() core.Head {
	var next core.Head
	for i, h := range p.heads {
		if h.OK && !p.due[i] && !p.taken[i] {
			next = next.Earlier(h)
		}
	}
	return next
}

func (p *naivePool) charge(index, n int) {
	p.rule.charge(index, n, p.due[index] || p.taken[index])
}

// oldestRule takes the least rank, then the oldest, then the one that was chosen longest ago.
type oldestRule struct {
	rank   func(index int) int
	heads  func(index int) core.Head
	chosen map[int]int
}

func (r *oldestRule) pick(due, active []int) core.Choice {
	if len(due) == 0 {
		return core.Choice{Index: -1}
	}
	byRank := func(a, b int) int { return r.rank(a) - r.rank(b) }
	if byRank(slices.MinFunc(active, byRank), slices.MinFunc(due, byRank)) < 0 {
		return core.Choice{Index: -1} // one of a lesser rank was chosen, and may have more work
	}
	best := slices.MinFunc(due, func(a, b int) int {
		return cmp.Or(r.rank(a)-r.rank(b), cmp.Compare(r.heads(a).Due, r.heads(b).Due), r.chosen[a]-r.chosen[b])
	})
	r.chosen[best] = slices.Max([]int{0, maxValue(r.chosen)}) + 1
	return core.Choice{Index: best}
}

func maxValue(m map[int]int) int {
	most := 0
	for _, v := range m {
		most = max(most, v)
	}
	return most
}

func (*oldestRule) ran(bool)              {}
func (*oldestRule) charge(int, int, bool) {}

// visitRule visits place after place; each shard has every n-th place.
type visitRule struct {
	shards, place, fruitless, running int
	poll                              time.Duration
}

func (r *visitRule) pick(due, _ []int) core.Choice {
	end := r.fruitless + r.shards
	if r.running > 0 {
		end = r.place + r.shards
	}
	for place := r.place; place < end; place++ {
		if i := place % r.shards; slices.Contains(due, i) {
			r.place = place + 1
			r.running++
			return core.Choice{Index: i}
		}
	}
	if r.running > 0 {
		return core.Choice{Index: -1}
	}
	r.place = max(r.place, end)
	r.fruitless = r.place
	return core.Choice{Index: -1, Wait: r.poll, Sleep: true}
}

func (r *visitRule) ran(ok bool) {
	r.running--
	if ok {
		r.fruitless = r.place
	}
}

func (*visitRule) charge(int, int, bool) {}

// weightRule keeps the virtual times of WeightedBy relative to the earliest of an active shard.
type weightRule struct {
	lasts, begins []int64
	chosen        []int
	choices       int
}

func (r *weightRule) pick(due, active []int) core.Choice {
	if len(due) == 0 {
		return core.Choice{Index: -1}
	}
	for _, i := range due {
		r.begins[i] = max(0, r.begins[i])
	}
	best := slices.MinFunc(due, func(a, b int) int {
		return cmp.Or(cmp.Compare(r.begins[a]+r.lasts[a], r.begins[b]+r.lasts[b]), r.chosen[a]-r.chosen[b])
	})
	r.begins[best] += r.lasts[best]
	r.choices++
	r.chosen[best] = r.choices
	earliest := r.begins[best]
	for _, i := range active {
		earliest = min(earliest, r.begins[i])
	}
	for i := range r.begins {
		r.begins[i] = max(-1<<60, r.begins[i]-earliest)
	}
	return core.Choice{Index: best}
}

func (*weightRule) ran(bool) {}

func (r *weightRule) charge(index, n int, active bool) {
	r.begins[index] += int64(n) * r.lasts[index]
	if active {
		r.begins[index] = max(0, r.begins[index])
	}
}

// firstSeq and firstWeighted are Seq and WeightedBy as they were when each lane had shards of its
// own: they look at all heads each time. A lane that chooses and runs in turn must notice no
// difference.
type firstSeq struct {
	poll         time.Duration
	next, misses int
}

func (s *firstSeq) Next(now core.Instant, heads []core.Head) core.Choice {
	for s.misses < len(heads) {
		i := s.next % len(heads)
		if heads[i].DueBy(now) {
			return core.Choice{Index: i}
		}
		s.next, s.misses = i+1, s.misses+1
	}
	s.misses = 0
	return core.Choice{Index: -1, Wait: s.poll, Sleep: true}
}

func (s *firstSeq) Ran(index int, ok bool) {
	s.next = index + 1
	s.misses++
	if ok {
		s.misses = 0
	}
}

type firstWeighted struct {
	lasts, begins, ran []int64
	turns              int64
}

func (w *firstWeighted) Next(now core.Instant, heads []core.Head) core.Choice {
	best := -1
	for i, h := range heads {
		if h.DueBy(now) && (best < 0 || w.before(i, best)) {
			best = i
		}
	}
	if best < 0 {
		return core.Choice{Index: -1}
	}
	w.turns++
	w.begins[best] += w.lasts[best]
	w.ran[best] = w.turns
	earliest := w.begins[best]
	for i, h := range heads {
		if h.DueBy(now) {
			earliest = min(earliest, w.begins[i])
		}
	}
	for i := range w.begins {
		w.begins[i] = max(0, w.begins[i]-earliest)
	}
	return core.Choice{Index: best}
}

func (w *firstWeighted) before(a, b int) bool {
	return cmp.Or(
		cmp.Compare(w.begins[a]+w.lasts[a], w.begins[b]+w.lasts[b]),
		cmp.Compare(w.ran[a], w.ran[b]),
	) < 0
}

func (*firstWeighted) Ran(int, bool) {}
