package postgres

import (
	"encoding/json"
	"fmt"
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
	// rows are the settlements of the receipts. It is nil if all jobs are done whole and processed.
	rows []settlement
}

func newSettlementColumns(list []core.Settlement) *settlementColumns {
	s := &settlementColumns{sent: make([]int, 0, len(list))}
	if len(list) == 0 {
		return s
	}

	usual := !slices.ContainsFunc(list, func(x core.Settlement) bool {
		return !x.Plain() || !x.Processed || x.Failed || x.Past != nil || x.Mark.OK || x.Stale > 0
	})
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
		if !usual {
			s.rows = append(s.rows, newSettlement(x))
		}
	}
	return s
}

func (s *settlementColumns) add(position int, x *core.Settlement) {
	s.sent = append(s.sent, position)
	s.ids = append(s.ids, orNone(x.ID))
	s.tokens = append(s.tokens, x.Receipt.Token)
	s.numbers = append(s.numbers, x.Receipt.Number)
}

// usual reports whether all jobs are done whole and processed, so that receiptArgs suffice.
func (s *settlementColumns) usual() bool { return s.rows == nil }

func (s *settlementColumns) receiptArgs() []any { return []any{s.ids, s.tokens, s.numbers} }

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

// settlement is a settlement as JSON, with the names of the SQL type settlement.
type settlement struct {
	ID           string `json:"id"`
	Token        int64  `json:"token"`
	Number       int64  `json:"number"`
	Processed    bool   `json:"processed"`
	Failed       bool   `json:"failed"`
	Dispositions string `json:"dispositions"`

	TimeRule   int16     `json:"time_rule"`
	Delay      int64     `json:"delay"`
	RetryCount int       `json:"retry_count"`
	Recoveries int       `json:"recoveries"`
	Failures   []failure `json:"failures,omitempty"`
	Slot       string    `json:"slot,omitempty"`

	Letter *letter `json:"letter,omitempty"`

	Past *pastRow `json:"past,omitempty"`

	Mark  *float64 `json:"mark,omitempty"`
	Stale int      `json:"stale,omitempty"`
}

func newSettlement(s *core.Settlement) settlement {
	row := settlement{
		ID:           orNone(s.ID),
		Token:        s.Receipt.Token,
		Number:       s.Receipt.Number,
		Processed:    s.Processed,
		Failed:       s.Failed,
		Dispositions: dispositionDigits(s),
		TimeRule:     int16(storekit.PutBackTime(&s.PutBack)),
		Delay:        s.PutBack.Delay.Microseconds(),
		RetryCount:   s.PutBack.RetryCount,
		Recoveries:   s.PutBack.Recoveries,
		Failures:     failuresOf(s.PutBack.Failures),
		Slot:         s.PutBack.Slot,
		Mark:         markArg(s.Mark),
		Stale:        s.Stale,
	}

	if s.Past != nil {
		row.Past = newPastRow(s.Past.Stored(s.ID, 0))
	}
	if s.Buries() {
		stored := s.Letter.Stored()
		row.Letter = new(newLetter(&stored))
	}
	return row
}

// dispositionDigits returns a digit for each payload in order up to the last exception, and one for
// all after it.
func dispositionDigits(s *core.Settlement) string {
	digit := func(d core.Disposition) byte { return '0' + byte(d) }
	var list []byte
	for _, e := range s.Except {
		if e.Position < 0 || e.Position >= core.MaxTurnPayloads {
			continue // no claimed job has it
		}
		for len(list) < e.Position {
			list = append(list, digit(s.Rest))
		}
		list = append(list, digit(e.Disposition))
	}
	return string(append(list, digit(s.Rest)))
}

// asJSON returns a list as the text of a JSON array, which every driver can send.
func asJSON[T any](list []T) (string, error) {
	text, err := json.Marshal(list)
	if err != nil {
		return "", fmt.Errorf("postgres: %w", err)
	}
	return string(text), nil
}
