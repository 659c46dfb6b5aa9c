package record

import (
	"encoding/binary"
	"math"
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
	b = binary.BigEndian.AppendUint32(b, uint32(p.Payloads))
	b = binary.BigEndian.AppendUint32(b, uint32(p.Attempt))
	return append(append(b, byte(len(p.Node))), p.Node...)
}

// ParsePast reads the stored record of an id, without its result, and the size of the result. ok is
// false if the record can't be read. It skips what follows the server's name.
func ParsePast(id, text string) (p core.Past, resultBytes int, ok bool) {
	s := decoder{rest: text}
	p = core.Past{ID: id, DoneAt: s.instant()}
	resultBytes = int(s.number(4))
	p.Started = s.instant()
	p.Took = time.Duration(min(s.instant(), core.MaxInstant)) * time.Microsecond
	p.Score = s.double()
	p.Payloads, p.Attempt = int(s.number(4)), int(s.number(4))
	p.Node = s.sized(1)
	return p, resultBytes, !s.bad
}

// KeepText returns the bounds of the records of a shard as lua/lib/past.lua reads them: empty if no
// record is kept.
func KeepText(k core.KeepPast) []byte {
	if !k.Any() {
		return nil
	}
	b := binary.BigEndian.AppendUint64(make([]byte, 0, 24), uint64(k.Age.Microseconds()))
	b = binary.BigEndian.AppendUint64(b, uint64(k.Count))
	return binary.BigEndian.AppendUint64(b, uint64(k.Bytes))
}
