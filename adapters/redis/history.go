package redis

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Statistics are sent and stored as "slot=count" in any order, for the counts
// that are not 0: processed, failed, and the buckets of Wait and Run.
const (
	slotProcessed = iota
	slotFailed
	slotWait
	slotRun = slotWait + core.HistogramBuckets
	slots   = slotRun + core.HistogramBuckets
)

// encodeStats returns "" for nil, and only then.
func encodeStats(s *core.Stats) string {
	if s == nil {
		return ""
	}
	b := []byte{' '}
	add := func(slot int, n uint64) {
		if n > 0 {
			b = strconv.AppendInt(b, int64(slot), 10)
			b = append(b, '=')
			b = strconv.AppendUint(b, n, 10)
			b = append(b, ' ')
		}
	}
	add(slotProcessed, s.Processed)
	add(slotFailed, s.Failed)
	for i := range core.HistogramBuckets {
		add(slotWait+i, uint64(s.Wait[i]))
		add(slotRun+i, uint64(s.Run[i]))
	}
	return string(b)
}

func parseStats(text string) (core.Stats, error) {
	var s core.Stats
	for part := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(part, "=")
		slot, err := strconv.Atoi(key)
		n, err2 := strconv.ParseUint(value, 10, 64)
		switch {
		case err != nil || err2 != nil || slot < 0 || slot >= slots:
			return core.Stats{}, errStored
		case slot == slotProcessed:
			s.Processed += n
		case slot == slotFailed:
			s.Failed += n
		case slot < slotRun:
			s.Wait[slot-slotWait] += uint32(n)
		default:
			s.Run[slot-slotRun] += uint32(n)
		}
	}
	return s, nil
}

// historyScripts is the most scripts of one exchange that read histories: one may have 24 hours.
const historyScripts = 8

// History implements [ports.Inspector].
func (s *Store) History(ctx context.Context, r ports.HistoryRequest) ([]ports.MinuteStats, error) {
	q, err := s.queue(ctx, r.Queue)
	if err != nil {
		return nil, err
	}
	minutes := make(map[core.Instant]*core.Stats)
	err = s.eachShardOf(ctx, q, historyScripts, func(shard core.Shard) call {
		return call{script: historyScript, keys: s.someKeys(shard, keyHistory), args: []any{int64(r.From), int64(r.To)}}
	}, func(_ core.Shard, value any) error { return addMinutes(minutes, value) })
	if err != nil {
		return nil, err
	}
	var list []ports.MinuteStats
	for _, at := range slices.SortedFunc(maps.Keys(minutes), cmp.Compare[core.Instant]) {
		list = append(list, ports.MinuteStats{At: at, Stats: *minutes[at]})
	}
	return list, nil
}

// addMinutes adds the statistics of one shard.
func addMinutes(minutes map[core.Instant]*core.Stats, value any) error {
	r := replyOf(value)
	for r.more() {
		at := core.Instant(r.parsed())
		counted, err := parseStats(r.text())
		if err != nil {
			return err
		}
		if minutes[at] == nil {
			minutes[at] = &core.Stats{}
		}
		minutes[at].Add(&counted)
	}
	return r.err()
}
