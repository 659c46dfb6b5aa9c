package postgres

import (
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// settlementColumns is settlements in the form that the function turn takes.
type settlementColumns struct {
	// repeated are the positions of settlements of a claim that an earlier one settles. sent are the
	// positions of the others, which the columns hold.
	repeated, sent []int

	ids             []string
	tokens, numbers []int64
	// processed and failed are nil if all jobs are processed and none failed.
	processed, failed []bool
	// The fields below are nil if all jobs are done whole.
	dispositions [][]byte
	times        []int16
	delays       []int64
	retryCounts  []int32
	recoveries   []int32
	errors       []string
	buryErrors   []string
	// groups is nil if no job is buried.
	groups []string
}

func newSettlementColumns(list []core.Settlement) *settlementColumns {
	s := &settlementColumns{sent: make([]int, 0, len(list))}
	if len(list) == 0 {
		return s
	}

	plain := !slices.ContainsFunc(list, func(x core.Settlement) bool { return !x.Plain() })
	known := make(map[core.ClaimRef]bool, len(list))
	for i := range list {
		x := &list[i]
		ref := core.ClaimRef{ID: x.ID, Receipt: x.Receipt}
		if known[ref] {
			s.repeated = append(s.repeated, i)
			continue
		}
		known[ref] = true
		s.add(i, x)
		if !plain {
			s.addDispositions(x)
		}
	}

	if plain && !slices.Contains(s.processed, false) && !slices.Contains(s.failed, true) {
		s.processed, s.failed = nil, nil
	}
	return s
}

func (s *settlementColumns) add(position int, x *core.Settlement) {
	s.sent = append(s.sent, position)
	s.ids = append(s.ids, orNone(x.ID))
	s.tokens = append(s.tokens, x.Receipt.Token)
	s.numbers = append(s.numbers, x.Receipt.Number)
	s.processed = append(s.processed, x.Processed)
	s.failed = append(s.failed, x.Failed)
}

// addDispositions adds the further columns of the settlement that was added last.
func (s *settlementColumns) addDispositions(x *core.Settlement) {
	s.dispositions = append(s.dispositions, dispositionCodes(x))
	s.times = append(s.times, int16(storekit.PutBackTime(&x.PutBack)))
	s.delays = append(s.delays, x.PutBack.Delay.Microseconds())
	s.retryCounts = append(s.retryCounts, int32(x.PutBack.RetryCount))
	s.recoveries = append(s.recoveries, int32(x.PutBack.Recoveries))
	s.errors = append(s.errors, storekit.WithTags("", core.ErrorText(x.PutBack.Error)))
	s.buryErrors = append(s.buryErrors, storekit.WithTags("", core.ErrorText(x.BuryError)))
	if x.Buries() {
		for len(s.groups) < len(s.ids)-1 {
			s.groups = append(s.groups, "")
		}
		s.groups = append(s.groups, core.GroupName(x.Group))
	}
}

// dispositionCodes returns a byte for each payload in order up to the last exception, and one for
// all after it.
func dispositionCodes(x *core.Settlement) []byte {
	var list []byte
	for _, e := range x.Except {
		if e.Position < 0 || e.Position >= core.MaxTurnPayloads {
			continue // no claimed job has it
		}
		for len(list) < e.Position {
			list = append(list, byte(x.Rest))
		}
		list = append(list, byte(e.Disposition))
	}
	return append(list, byte(x.Rest))
}

// usual reports whether all jobs are done whole and processed, so that receiptArgs suffice.
func (s *settlementColumns) usual() bool { return s.processed == nil && s.dispositions == nil }

func (s *settlementColumns) receiptArgs() []any { return []any{s.ids, s.tokens, s.numbers} }

func (s *settlementColumns) outcomeArgs() []any {
	return []any{
		s.processed, s.failed, s.dispositions, s.times, s.delays, s.retryCounts, s.recoveries, s.errors, s.buryErrors,
	}
}

// positions returns the positions in the request of places in the columns, from 1.
func (s *settlementColumns) positions(places []int32) []int {
	var list []int
	for _, p := range places {
		list = append(list, s.sent[p-1])
	}
	return list
}

// skipped returns the positions of settlements that had no claim, repeated ones included.
func (s *settlementColumns) skipped(places []int32) []int {
	list := append(s.positions(places), s.repeated...)
	slices.Sort(list)
	return list
}
