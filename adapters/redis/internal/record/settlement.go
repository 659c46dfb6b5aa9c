package record

import (
	"encoding/binary"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// AppendSettlements appends the settlements: how many, their ids, their receipts or one if all
// have the same, their codes, and the texts of those that leave something or are recorded.
func AppendSettlements(args []any, settlements []core.Settlement) []any {
	args = append(args, len(settlements))
	receipts, codes := make([]byte, 0, receiptBytes), make([]byte, len(settlements))
	same := true
	var texts []any

	for i := range settlements {
		x := &settlements[i]
		args = append(args, x.ID)
		same = same && x.Receipt == settlements[0].Receipt
		if x.Processed {
			codes[i] |= settledProcessed
		}
		if x.Failed {
			codes[i] |= settledFailed
		}
		if !x.Plain() {
			codes[i] |= settledParts
			texts = append(texts, settlementText(x))
		}
		if x.Past != nil {
			codes[i] |= settledRecord
			p := x.Past.Stored(x.ID, 0)
			texts = append(texts, pastText(&p))
			if len(p.Result) > 0 {
				codes[i] |= settledResult
				texts = append(texts, p.Result)
			}
		}
		if x.Mark.OK {
			codes[i] |= settledMark
			texts = append(texts, MarkText(x.Mark))
		}
		if x.Stale > 0 {
			codes[i] |= settledStale
			texts = append(texts, x.Stale)
		}
	}

	for i := range settlements {
		if i == 0 || !same {
			receipts = appendReceipt(receipts, settlements[i].Receipt)
		}
	}
	return append(append(args, receipts, codes), texts...)
}

// Bits of a settlement's code. lua/turn/turn_settle.lua, turn_plain.lua and lua/lib/past.lua have the
// same: a job that was processed, one that failed, one that leaves something, whose parts are in a
// text, one that is recorded by a text, one whose record has a result, which is a text too, one that
// raises a mark, and one that has dropped stale payloads, each with a text.
const (
	settledProcessed = 1 << iota
	settledFailed
	settledParts
	settledRecord
	settledResult
	settledMark
	settledStale
)

// settlementText returns the parts of a settlement that leaves something, as dispose in
// lua/turn/turn_settle.lua reads them.
func settlementText(x *core.Settlement) []byte {
	back := Failures(x.PutBack.Failures)
	b := make([]byte, 0, 96+len(back)+len(x.PutBack.Slot))
	b = append(b, byte(x.Rest), storekit.PutBackTime(&x.PutBack))

	// A delay beyond the range of instants is as good as its limit.
	delay := max(-int64(core.MaxInstant), min(x.PutBack.Delay.Microseconds(), int64(core.MaxInstant)))
	b = binary.BigEndian.AppendUint64(b, uint64(delay))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(x.PutBack.RetryCount)))
	b = binary.BigEndian.AppendUint32(b, uint32(x.PutBack.Recoveries))
	b = appendSized(b, back)
	b = appendSlot(b, x.PutBack.Slot)

	count := len(b)
	b = binary.BigEndian.AppendUint32(b, 0)
	for _, e := range x.Except {
		if e.Position < 0 || e.Position >= core.MaxTurnPayloads {
			continue // no claimed job has it
		}
		b = binary.BigEndian.AppendUint32(b, uint32(e.Position))
		b = append(b, byte(e.Disposition))
		binary.BigEndian.PutUint32(b[count:], binary.BigEndian.Uint32(b[count:])+1)
	}

	if x.Buries() {
		letter := x.Letter.Stored()
		letter.Payloads, letter.Tags = nil, ""
		b = AppendDeadLetter(b, &letter)
	}
	return b
}
