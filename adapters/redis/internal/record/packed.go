package record

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"github.com/skeinq/skein/core"
)

// The lowest two bits of a record's flags are the kind of its payloads. lua/lib/packed.lua
// describes the format.
const (
	kindNarrow = iota // one, whose score is in whole microseconds
	kindWide          // one, whose score is a double
	kindMany          // a sorted set has them
	kindListed        // the record has them as a list

	kindMask = 3
)

// The other flags of a record.
const (
	flagAnnotated = 1 << (iota + 2)
	flagFirst
	flagTags
	flagFailed
	flagAlone
	flagSlot
)

// ErrStored reports a stored value that none of the store's scripts has written.
var ErrStored = errors.New("redis: a stored value can't be read; check whether another program writes to Skein's keys")

// encoder writes a record: each method appends a part, and adds its flag.
type encoder struct {
	b []byte
	// flags is the position of the flags in b.
	flags int
}

// begin appends the flags of a record.
func begin(b []byte) encoder { return encoder{b: append(b, 0), flags: len(b)} }

func (e *encoder) flag(f byte) { e.b[e.flags] |= f }

// AppendPushed appends the packed job of an entry that is due now: a fresh one with one payload and
// some tags.
func AppendPushed(b []byte, p *core.Payload, tags core.Tags) []byte {
	e := begin(b)
	e.score(p.Score)
	e.tags(tags)
	e.only(p)
	return e.b
}

// PushedSize returns the largest number of bytes that AppendPushed appends.
func PushedSize(p *core.Payload, tags core.Tags) int {
	const flagsAndScore, length = 1 + 8, 2
	size := flagsAndScore + len(p.Data)
	if len(p.Meta) > 0 {
		size += length + len(p.Meta)
	}
	if tags != "" {
		size += length + len(tags)
	}
	return size
}

// AppendJob appends a packed job, without its id and PerformAt.
func AppendJob(b []byte, j *core.Job) []byte {
	e := begin(b)
	e.scoreOf(j.Payloads)
	if j.FirstPush != j.PerformAt {
		e.flag(flagFirst)
		e.b = binary.BigEndian.AppendUint64(e.b, uint64(j.FirstPush))
	}

	e.tags(j.Tags)
	if j.Slot != "" {
		e.flag(flagSlot)
		e.b = appendSlot(e.b, j.Slot)
	}
	if !j.Fresh() || j.Recoveries > 0 || len(j.Failures) > 0 {
		e.flag(flagFailed)
		if j.Alone() {
			e.flag(flagAlone)
		}
		e.b = binary.BigEndian.AppendUint32(e.b, uint32(int32(j.RetryCount)))
		e.b = binary.BigEndian.AppendUint32(e.b, uint32(j.Recoveries))
		e.failures(j.Failures)
	}

	e.payloads(j.Payloads)
	return e.b
}

// score appends the score of the only payload, and sets the kind.
func (e *encoder) score(score float64) {
	score = core.NormalScore(score)
	micros := math.Floor(float64(score*1e6) + 0.5)
	if micros >= 0 && micros <= float64(core.MaxInstant) && micros/1e6 == score {
		var text [8]byte
		binary.BigEndian.PutUint64(text[:], uint64(micros))
		e.b = append(e.b, text[1:]...)
		return
	}
	e.flag(kindWide)
	e.double(score)
}

// scoreOf appends the score if there is one payload. Otherwise it sets the kind of a list.
func (e *encoder) scoreOf(payloads []core.Payload) {
	if len(payloads) == 1 {
		e.score(payloads[0].Score)
	} else {
		e.flag(kindListed)
	}
}

func (e *encoder) double(score float64) {
	e.b = binary.BigEndian.AppendUint64(e.b, math.Float64bits(score))
}

func (e *encoder) tags(tags core.Tags) {
	if tags != "" {
		e.flag(flagTags)
		e.b = binary.BigEndian.AppendUint16(e.b, uint16(len(tags)))
		e.b = append(e.b, tags...)
	}
}

// appendSlot appends a slot behind its length in 2 bytes.
func appendSlot(b []byte, slot string) []byte {
	return append(binary.BigEndian.AppendUint16(b, uint16(len(slot))), slot...)
}

// failures appends the failures of a record. The flag and what else stands before them differ
// between jobs and dead letters.
func (e *encoder) failures(list core.Failures) { e.b = appendSized(e.b, Failures(list)) }

// Failures returns failures as a record has them, without their length.
func Failures(list core.Failures) []byte {
	var b []byte
	for _, f := range list.Stored() {
		b = binary.BigEndian.AppendUint64(slices.Grow(b, 13+len(f.Node)+len(f.Text)), uint64(f.At))
		b = append(append(b, byte(len(f.Node))), f.Node...)
		b = appendSized(b, f.Text)
	}
	return b
}

// appendSized appends a text behind its length in 4 bytes.
func appendSized[T string | []byte](b []byte, text T) []byte {
	return append(binary.BigEndian.AppendUint32(b, uint32(len(text))), text...)
}

// only appends the only payload, whose score stands before.
func (e *encoder) only(p *core.Payload) {
	if len(p.Meta) > 0 {
		e.flag(flagAnnotated)
		e.b = binary.BigEndian.AppendUint16(e.b, uint16(len(p.Meta)))
		e.b = append(e.b, p.Meta...)
	}
	e.b = append(e.b, p.Data...)
}

// payloads appends the only payload, or a list.
func (e *encoder) payloads(payloads []core.Payload) {
	if len(payloads) == 1 {
		e.only(&payloads[0])
		return
	}
	e.b = binary.BigEndian.AppendUint32(e.b, uint32(len(payloads)))
	for i := range payloads {
		p := &payloads[i]
		e.double(core.NormalScore(p.Score))
		e.b = binary.BigEndian.AppendUint32(e.b, uint32(len(p.Data)))
		e.b = binary.BigEndian.AppendUint16(e.b, uint16(len(p.Meta)))
		e.b = append(e.b, p.Data...)
		e.b = append(e.b, p.Meta...)
	}
}

// decoder reads a stored value that a script returned. After the end of the value it returns zeros,
// and bad is set.
type decoder struct {
	rest string
	bad  bool
}

func (s *decoder) take(n int) string {
	if n < 0 || n > len(s.rest) {
		s.rest, s.bad = "", true
		return ""
	}
	taken := s.rest[:n]
	s.rest = s.rest[n:]
	return taken
}

// number reads a big-endian unsigned integer of n bytes.
func (s *decoder) number(n int) uint64 {
	var v uint64
	for _, b := range []byte(s.take(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

// sized reads a text that follows its length in n bytes.
func (s *decoder) sized(n int) string { return s.take(int(min(s.number(n), math.MaxInt32))) }

func (s *decoder) instant() core.Instant { return core.Instant(s.number(8) & math.MaxInt64) }

func (s *decoder) double() float64 { return math.Float64frombits(s.number(8)) }

// ParseJob reads a packed job of an id, with its PerformAt.
func ParseJob(id, text string, at core.Instant) (core.Job, error) {
	s := decoder{rest: text}
	return s.job(id, at)
}

// job reads a packed job to its end.
func (s *decoder) job(id string, at core.Instant) (core.Job, error) {
	flags := s.number(1)
	score := s.score(flags)
	job := core.Job{ID: id, State: core.State{PerformAt: at, FirstPush: at, RetryCount: core.FreshRetryCount}}
	if flags&flagFirst != 0 {
		job.FirstPush = s.instant()
	}

	job.Tags = s.tags(flags)
	if flags&flagSlot != 0 {
		job.Slot = s.sized(2)
	}
	if flags&flagFailed != 0 {
		job.RetryCount = int(int32(s.number(4)))
		job.Recoveries = int(s.number(4))
		job.Failures = s.failures()
	}

	job.Payloads = s.payloads(flags, score)
	if s.bad || s.rest != "" {
		return core.Job{}, ErrStored
	}
	return job, nil
}

// score reads the score of the only payload. It is 0 for another kind. A record with many payloads
// is bad, because scripts expand sets to lists.
func (s *decoder) score(flags uint64) float64 {
	switch flags & kindMask {
	case kindMany:
		s.bad = true
	case kindWide:
		return s.double()
	case kindNarrow:
		return float64(s.number(7)) / 1e6
	}
	return 0
}

func (s *decoder) tags(flags uint64) core.Tags {
	if flags&flagTags == 0 {
		return ""
	}
	return core.Tags(s.sized(2))
}

// failures reads the failures of a record.
func (s *decoder) failures() core.Failures {
	list := decoder{rest: s.sized(4)}
	var failures core.Failures
	for list.rest != "" {
		failures = append(failures, core.Failure{At: list.instant(), Node: list.sized(1), Text: list.sized(4)})
	}
	s.bad = s.bad || list.bad
	return failures.Stored()
}

// payloads reads the only payload, which has the given score, or a list.
func (s *decoder) payloads(flags uint64, score float64) []core.Payload {
	if flags&kindMask != kindListed {
		only := core.Payload{Score: score}
		if flags&flagAnnotated != 0 {
			only.Meta = bytesOf(s.sized(2))
		}
		only.Data = []byte(s.take(len(s.rest)))
		return []core.Payload{only}
	}

	n := s.number(4)
	var list []core.Payload
	for ; n > 0 && !s.bad; n-- {
		p := core.Payload{Score: s.double()}
		data, meta := s.number(4), s.number(2)
		p.Data = []byte(s.take(int(min(data, math.MaxInt32))))
		p.Meta = bytesOf(s.take(int(meta)))
		list = append(list, p)
	}
	return list
}

// bytesOf returns the bytes of a text, nil if it is empty.
func bytesOf(text string) []byte {
	if text == "" {
		return nil
	}
	return []byte(text)
}
