package postgres

import (
	"slices"

	"github.com/skeinq/skein/core"
)

// settled is settlements as the function settle_claimed takes them.
type settled struct {
	// repeated are the positions of settlements of what an earlier one settles;
	// sent are those of the others, which the columns hold.
	repeated, sent []int

	ids             []string
	tokens, numbers []int64
	// flags is nil if all are plain, and processed.
	flags []int16
	// What follows is nil if all jobs are gone whole.
	rest         []int16
	sameTime     []bool
	delays       []int64
	retries      []int32
	recoveries   []int32
	errors       []string
	buryErrors   []string
	place        []int32
	position     []int32
	dispositions []int16
}

// flags of a settlement.
const (
	processedFlag int16 = 1 << iota
	failedFlag
)

func newSettled(list []core.Settlement) *settled {
	s := &settled{sent: make([]int, 0, len(list))}
	if len(list) == 0 {
		return s
	}
	plain := true
	for i := range list {
		plain = plain && list[i].Plain()
	}
	type claimed struct {
		id   string
		mark core.Receipt
	}
	known := make(map[claimed]bool, len(list))
	for i := range list {
		x := &list[i]
		if c := (claimed{x.ID, x.Receipt}); known[c] {
			s.repeated = append(s.repeated, i)
			continue
		} else {
			known[c] = true
		}
		s.add(i, x)
		if !plain {
			s.addFate(x)
		}
	}
	if plain && !slices.ContainsFunc(s.flags, func(f int16) bool { return f != processedFlag }) {
		s.flags = nil
	}
	return s
}

func (s *settled) add(position int, x *core.Settlement) {
	s.sent = append(s.sent, position)
	s.ids = append(s.ids, x.ID)
	s.tokens = append(s.tokens, x.Receipt.Token)
	s.numbers = append(s.numbers, x.Receipt.Number)
	var flags int16
	if x.Processed {
		flags |= processedFlag
	}
	if x.Failed {
		flags |= failedFlag
	}
	s.flags = append(s.flags, flags)
}

// addFate adds what becomes of the payloads of the settlement added last.
func (s *settled) addFate(x *core.Settlement) {
	s.rest = append(s.rest, int16(x.Rest))
	s.sameTime = append(s.sameTime, x.PutBack.SameTime)
	s.delays = append(s.delays, x.PutBack.Delay.Microseconds())
	s.retries = append(s.retries, int32(x.PutBack.RetryCount))
	s.recoveries = append(s.recoveries, int32(x.PutBack.Recoveries))
	s.errors = append(s.errors, x.PutBack.Error)
	s.buryErrors = append(s.buryErrors, x.BuryError)
	for _, e := range x.Except {
		s.place = append(s.place, int32(len(s.ids)))
		s.position = append(s.position, int32(e.Position))
		s.dispositions = append(s.dispositions, int16(e.Disposition))
	}
}

// plain reports whether fates has nothing to say.
func (s *settled) plain() bool { return s.flags == nil && s.rest == nil }

func (s *settled) marks() []any { return []any{s.ids, s.tokens, s.numbers} }

func (s *settled) fates() []any {
	return []any{
		s.flags, s.rest, s.sameTime, s.delays, s.retries, s.recoveries, s.errors, s.buryErrors,
		s.place, s.position, s.dispositions,
	}
}

// places are the positions in the request of places in the columns, from 1.
func (s *settled) places(places []int32) []int {
	var list []int
	for _, p := range places {
		list = append(list, s.sent[p-1])
	}
	return list
}

// skipped are the positions of what was not claimed, repeated ones included.
func (s *settled) skipped(places []int32) []int {
	list := append(s.places(places), s.repeated...)
	slices.Sort(list)
	return list
}
