package record

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports/storekit"
)

// Flags of a packed job; lua/lib/packed.lua describes it.
const (
	flagWide = 1 << iota
	flagMany
	flagTagged
	flagFirst
	flagFailed
	flagListed
)

// ErrStored reports a stored value that none of the store's scripts has written.
var ErrStored = errors.New("redis: a stored value can't be read; check whether another program writes to Skein's keys")

// AppendPacked appends a packed fresh job with one payload and some tags that is due now.
func AppendPacked(b []byte, p *core.Payload, tags core.Tags) []byte {
	score, flags := core.NormalScore(p.Score), byte(0)
	if len(p.Meta) > 0 {
		flags = flagTagged
	}
	if tags != "" {
		flags |= flagFailed
	}

	micros := math.Floor(float64(score*1e6) + 0.5)
	if micros >= 0 && micros <= float64(core.MaxInstant) && micros/1e6 == score {
		b = append(b, flags)
		b = append(b, binary.BigEndian.AppendUint64(nil, uint64(micros))[1:]...)
	} else {
		b = append(b, flags|flagWide)
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(score))
	}

	if tags != "" {
		none := int32(core.FreshRetryCount)
		text := storekit.WithTags(tags, "")
		b = binary.BigEndian.AppendUint32(b, uint32(none))
		b = binary.BigEndian.AppendUint32(b, 0) // Recoveries
		b = binary.BigEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
	}

	if len(p.Meta) > 0 {
		b = binary.BigEndian.AppendUint16(b, uint16(len(p.Meta)))
		b = append(b, p.Meta...)
	}
	return append(b, p.Data...)
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

// Stored is a job or a dead letter. A dead letter is stored behind its group, as a job whose
// PerformAt is when it changed.
type Stored struct {
	core.Job
	Group string
}

// ParseStored reads the record of an id.
func ParseStored(id, text string, at core.Instant, dead bool) (Stored, error) {
	s := decoder{rest: text}
	var group string
	if dead {
		group = s.sized(1)
	}
	job, err := s.job(id, at)
	return Stored{Job: job, Group: group}, err
}

// DeadLetter returns the stored value as a dead letter, or nil for nil.
func (s *Stored) DeadLetter() *core.DeadLetter {
	if s == nil {
		return nil
	}
	return &core.DeadLetter{
		ID:        s.ID,
		Payloads:  s.Payloads,
		ChangedAt: s.PerformAt,
		Error:     s.Error,
		Group:     s.Group,
		Tags:      s.Tags,
	}
}

// job reads a packed job to its end.
func (s *decoder) job(id string, at core.Instant) (core.Job, error) {
	flags := s.number(1)
	job := core.Job{ID: id, State: core.State{PerformAt: at, FirstPush: at, RetryCount: core.FreshRetryCount}}

	var one core.Payload
	switch {
	case flags&flagMany != 0:
		return core.Job{}, ErrStored // scripts expand sets to lists
	case flags&flagListed != 0:
	case flags&flagWide != 0:
		one.Score = s.double()
	default:
		one.Score = float64(s.number(7)) / 1e6
	}

	if flags&flagFirst != 0 {
		job.FirstPush = s.instant()
	}
	if flags&flagFailed != 0 {
		job.RetryCount = int(int32(s.number(4)))
		job.Recoveries = int(s.number(4))
		job.Tags, job.Error = storekit.CutTags(s.sized(4))
	}

	if flags&flagListed != 0 {
		job.Payloads = s.payloads()
	} else {
		if flags&flagTagged != 0 {
			one.Meta = bytesOf(s.sized(2))
		}
		one.Data = []byte(s.take(len(s.rest)))
		job.Payloads = []core.Payload{one}
	}

	if s.bad || s.rest != "" {
		return core.Job{}, ErrStored
	}
	return job, nil
}

// payloads reads the list of a packed job.
func (s *decoder) payloads() []core.Payload {
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

// ParseGroup reads the counts of a group of dead letters. ok is false if they can't be read.
func ParseGroup(name, text string) (g core.Group, ok bool) {
	s := decoder{rest: text}
	g = core.Group{Name: name, Count: int64(s.instant()), First: s.instant(), Last: s.instant()}
	return g, !s.bad && s.rest == "" && g.Count > 0
}
