package record

import (
	"encoding/binary"
	"math"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
)

// pastText returns the record of a done job, without its id, DoneAt and result. It begins with the
// size of the result; lua/lib/past.lua reads that and nothing else.
func pastText(p *core.Past) []byte {
	b := make([]byte, 0, 37+len(p.Node))
	b = binary.BigEndian.AppendUint32(b, uint32(len(p.Result)))
	b = binary.BigEndian.AppendUint64(b, uint64(p.Started))
	b = binary.BigEndian.AppendUint64(b, uint64(p.Took.Microseconds()))
	b = binary.BigEndian.AppendUint64(b, math.Float64bits(p.Score))
	payloads := uint32(p.Payloads)
	if p.Raises {
		payloads |= raises
	}
	b = binary.BigEndian.AppendUint32(b, payloads)
	b = binary.BigEndian.AppendUint32(b, uint32(p.Attempt))
	return append(append(b, byte(len(p.Node))), p.Node...)
}

// PastText returns the record of a done job, or of a mark, as it is stored, without its result.
func PastText(p *core.Past) []byte {
	return append(binary.BigEndian.AppendUint64(nil, uint64(p.DoneAt)), pastText(p)...)
}

// raises is the bit of the number of payloads that is set if the score counts for the mark.
const raises = 1 << 31

// ParsePast reads the stored record of an id, without its result, and the size of the result. ok is
// false if the record can't be read. It skips what follows the server's name.
func ParsePast(id, text string) (p core.Past, resultBytes int, ok bool) {
	s := decoder{rest: text}
	p = core.Past{ID: id, DoneAt: s.instant()}
	resultBytes = int(s.number(4))
	p.Started = s.instant()
	p.Took = time.Duration(min(s.instant(), core.MaxInstant)) * time.Microsecond
	p.Score = s.double()
	payloads := uint32(s.number(4))
	p.Payloads, p.Raises, p.Attempt = int(payloads&^raises), payloads&raises > 0, int(s.number(4))
	p.Node = s.sized(1)
	return p, resultBytes, !s.bad
}

// MarkText returns the record of a mark, or nothing if there is none. It is a record that has only a
// score.
func MarkText(m core.Mark) []byte {
	if !m.OK {
		return nil
	}
	return pastText(&core.Past{Score: m.Score, Raises: true})
}

// markField ends the field of the record of a mark, after its id. No id has it.
const markField = "\x00"

// CutMark returns the id of a field, and whether the field has the record of a mark.
func CutMark(field string) (id string, isMark bool) { return strings.CutSuffix(field, markField) }

// ParseMark returns the mark of an id, whose record and whose record of a mark are stored as these
// texts, each of which may be empty.
func ParseMark(texts ...string) (m core.Mark) {
	for _, text := range texts {
		if p, _, ok := ParsePast("", text); ok {
			m = m.Raised(p.Mark())
		}
	}
	return m
}

// KeepText returns the bounds of the records of a shard as lua/lib/past.lua reads them: empty if no
// record is kept. If marks is set, a byte more asks for the marks of claims.
func KeepText(k core.KeepPast, marks bool) []byte {
	b := make([]byte, 0, 25)
	if k.Any() {
		b = binary.BigEndian.AppendUint64(b, uint64(k.Age.Microseconds()))
		b = binary.BigEndian.AppendUint64(b, uint64(k.Count))
		b = binary.BigEndian.AppendUint64(b, uint64(k.Bytes))
	}
	if marks {
		b = append(b, 'm')
	}
	return b
}
