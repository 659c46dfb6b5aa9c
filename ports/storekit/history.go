package storekit

import (
	"cmp"
	"encoding/binary"
	"errors"
	"iter"
	"maps"
	"math"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// listedFrom returns the first minute that a store lists at now.
func listedFrom(now core.Instant) core.Instant { return now.Minute().Add(-ports.HistoryKept) }

// DaysStored is the largest number of days that a store keeps of a queue: the listed ones, the next
// day, in which a record may be ahead, and one more, so that a clock that is set back hides nothing.
const DaysStored = ports.DaysKept + 3

// FarthestDay returns the day that is farthest from the present one: the day to remove if there are
// more than [DaysStored]. Of two days it returns the earlier one. It returns the present day if
// there are no others.
func FarthestDay(days iter.Seq[core.Instant], now core.Instant) core.Instant {
	farthest := now.Day()
	for day := range days {
		d, most := day.Sub(now.Day()).Abs(), farthest.Sub(now.Day()).Abs()
		if d > most || d == most && day < farthest {
			farthest = day
		}
	}
	return farthest
}

// History sums up records for the reply of [ports.Inspector].History. Make it with [NewHistory]. It
// is not safe for concurrent use.
type History struct {
	request  ports.HistoryRequest
	from, to core.Instant
	steps    map[core.Instant]*core.Stats
}

// NewHistory returns a History without records, for a valid request at now. For a Step of a
// [ports.Day] the store adds its days, each in the place of a minute.
func NewHistory(r ports.HistoryRequest, now core.Instant) *History {
	h := &History{
		request: r,
		from:    max(r.From, listedFrom(now)),
		to:      r.To,
		steps:   make(map[core.Instant]*core.Stats),
	}
	if r.Step == ports.Day {
		h.from = max(max(0, r.From).Day(), now.Day().Add(-ports.DaysKept*ports.Day))
	}
	if r.To == 0 {
		h.to = core.MaxInstant + 1
	}
	return h
}

// step returns the sum that a minute belongs to, or nil if the minute is not requested.
func (h *History) step(minute core.Instant) *core.Stats {
	if minute < h.from || minute >= h.to {
		return nil
	}
	at := h.request.StepOf(minute)
	sum := h.steps[at]
	if sum == nil {
		sum = &core.Stats{}
		h.steps[at] = sum
	}
	return sum
}

// Add adds a record, if the request includes its minute.
func (h *History) Add(minute core.Instant, s *core.Stats) {
	if sum := h.step(minute); sum != nil {
		sum.Add(s)
	}
}

// AddEncoded is Add for statistics that [AppendStats] has encoded. For any other bytes it returns
// an error and adds nothing; the store may continue with the next record. It does not read records
// whose minute is not requested.
func (h *History) AddEncoded(minute core.Instant, encoded []byte) error {
	sum := h.step(minute)
	if sum == nil {
		return nil
	}
	before := *sum
	err := addEncoded(sum, encoded)
	if err != nil {
		*sum = before
	}
	return err
}

// List returns the sums in order of time, without those that have counted nothing.
func (h *History) List() []ports.MinuteStats {
	var list []ports.MinuteStats
	for _, at := range slices.SortedFunc(maps.Keys(h.steps), cmp.Compare[core.Instant]) {
		if s := h.steps[at]; s.Counted() > 0 {
			list = append(list, ports.MinuteStats{At: at, Stats: *s})
		}
	}
	return list
}

// AppendStats appends statistics in the compact form in which stores keep them. The form is:
// Processed, Failed, WaitSum and RunSum as unsigned varints; WaitSquares and RunSquares as
// big-endian float64; the counts of Wait that are not 0, and then a 0; the same for Run. In front
// of each count is the distance in buckets from the previous count, or from the position before the
// first bucket. Counts and distances are unsigned varints.
func AppendStats(b []byte, s *core.Stats) []byte {
	for _, n := range []uint64{s.Processed, s.Failed, s.WaitSum, s.RunSum} {
		b = binary.AppendUvarint(b, n)
	}

	for _, x := range []float64{s.WaitSquares, s.RunSquares} {
		b = binary.BigEndian.AppendUint64(b, math.Float64bits(x))
	}

	for _, h := range []*core.Histogram{&s.Wait, &s.Run} {
		last := -1
		for i, n := range h {
			if n > 0 {
				b = binary.AppendUvarint(b, uint64(i-last))
				b = binary.AppendUvarint(b, n)
				last = i
			}
		}
		b = append(b, 0)
	}

	return b
}

// ReadStats returns the statistics that [AppendStats] has encoded.
func ReadStats(b []byte) (core.Stats, error) {
	var s core.Stats
	if err := addEncoded(&s, b); err != nil {
		return core.Stats{}, err
	}
	return s, nil
}

var errStats = errors.New("the stored statistics are damaged")

// addEncoded adds the statistics that AppendStats has encoded to s.
func addEncoded(s *core.Stats, b []byte) error {
	d := statsDecoder{encoded: b}
	s.Processed += d.uint()
	s.Failed += d.uint()
	s.WaitSum += d.uint()
	s.RunSum += d.uint()
	s.WaitSquares += d.float()
	s.RunSquares += d.float()
	d.addHistogram(&s.Wait)
	d.addHistogram(&s.Run)
	if d.bad || d.at < len(b) {
		return errStats
	}
	return nil
}

// statsDecoder reads encoded from the position at on. bad is set once it has met a fault.
type statsDecoder struct {
	encoded []byte
	at      int
	bad     bool
}

func (d *statsDecoder) uint() uint64 {
	if d.at < len(d.encoded) && d.encoded[d.at] < 0x80 { // as most are
		d.at++
		return uint64(d.encoded[d.at-1])
	}
	n, size := binary.Uvarint(d.encoded[d.at:])
	if size <= 0 {
		d.bad, d.at = true, len(d.encoded)
		return 0
	}
	d.at += size
	return n
}

func (d *statsDecoder) float() float64 {
	if len(d.encoded)-d.at < 8 {
		d.bad, d.at = true, len(d.encoded)
		return 0
	}
	d.at += 8
	return math.Float64frombits(binary.BigEndian.Uint64(d.encoded[d.at-8:]))
}

func (d *statsDecoder) addHistogram(h *core.Histogram) {
	bucket := -1
	for step := d.uint(); step > 0; step = d.uint() {
		if step > uint64(len(h)-1-bucket) {
			d.bad = true
			return
		}
		bucket += int(step)
		h[bucket] += d.uint()
	}
}

// NewestRecords returns the records to store, in order of queue and minute. For each queue and
// minute it returns the record that has counted most. It leaves out records that have counted
// nothing.
func NewestRecords(records []ports.Record) []ports.Record {
	newest := slices.DeleteFunc(slices.Clone(records), func(r ports.Record) bool { return r.Stats.Counted() == 0 })
	slices.SortFunc(newest, func(a, b ports.Record) int {
		return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(a.Minute, b.Minute),
			cmp.Compare(b.Stats.Counted(), a.Stats.Counted()))
	})
	return slices.CompactFunc(newest, func(a, b ports.Record) bool {
		return a.Queue == b.Queue && a.Minute == b.Minute
	})
}
