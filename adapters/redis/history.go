package redis

import (
	"context"
	"encoding/binary"
	"slices"
	"strconv"
	"time"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// historyHours is the number of hashes that take turns, each with the minutes of one hour: the
// hours that are kept, the next hour, in which a record may be ahead, and one hour that is over.
const historyHours = 27

// historyScripts is the largest number of scripts in one exchange; each reads an hour.
const historyScripts = 8

// A day, an hour and a minute, in microseconds.
const (
	dayMicros    = int64(ports.Day / time.Microsecond)
	hourMicros   = int64(time.Hour / time.Microsecond)
	minuteMicros = int64(time.Minute / time.Microsecond)
)

// historyKey names the counts of a queue in an hour since the Unix epoch, and in hours that are a
// multiple of historyHours away. It is in the slot of the queue's first shard.
func (s *Store) historyKey(queue string, hour int64) string {
	return s.base(core.Shard{Queue: queue}) + "h" + strconv.FormatInt(hour%historyHours, 10)
}

// historyKeys returns the keys of all hours.
func (s *Store) historyKeys(queue string) []any {
	keys := make([]any, historyHours)
	for i := range keys {
		keys[i] = s.historyKey(queue, int64(i))
	}
	return keys
}

// daysKey names the counts of a queue by day. It is in the slot of the queue's first shard.
func (s *Store) daysKey(queue string) string { return s.base(core.Shard{Queue: queue}) + "days" }

// Record implements [ports.Registry]. It looks a record's queue up in the queue's first shard.
func (s *Store) Record(ctx context.Context, r ports.RecordRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	for _, o := range s.runApart(ctx, s.recordCalls(&r)) {
		if o.Err != nil {
			return o.Err
		}
	}
	return ctx.Err()
}

// recordCalls returns a call for each queue and hour that has records.
func (s *Store) recordCalls(r *ports.RecordRequest) []exchange.Call {
	records := storekit.NewestRecords(r.Records)
	var calls []exchange.Call
	var last *ports.Record
	for i := range records {
		one := &records[i]
		if core.ValidateQueue(one.Queue, 1) != nil {
			continue // nobody can have declared it
		}

		hour := int64(one.Minute) / hourMicros
		if last == nil || last.Queue != one.Queue || int64(last.Minute)/hourMicros != hour {
			keys := append(s.someKeys(core.Shard{Queue: one.Queue}, keyMeta),
				s.historyKey(one.Queue, hour), s.daysKey(one.Queue))
			calls = append(calls, exchange.Call{Script: recordScript, Keys: keys, Args: []any{s.now(), r.Owner, hour}})
		}

		last = one
		args := &calls[len(calls)-1].Args
		*args = append(*args, int64(one.Minute)%hourMicros/minuteMicros,
			binary.BigEndian.AppendUint64(nil, one.Stats.Counted()), storekit.AppendStats(nil, &one.Stats))
	}
	return calls
}

// History implements [ports.Inspector]. It leaves out a record that can't be read. All hours and the
// days are in the slot of the queue's first shard. The call also queries some other shards. When one
// of these has answered, it waits only a short time for the server of the first shard.
func (s *Store) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	if err := r.Validate(); err != nil {
		return ports.HistoryReply{}, err
	}
	q, err := s.knownQueue(ctx, r.Queue)
	if err != nil {
		return ports.HistoryReply{}, err
	}
	asked := core.Shards(r.Queue, min(q.Shards, shardsToAsk))
	first, beside := asked[0], asked[1:]

	var sums *storekit.History
	var lost storekit.Lost
	for reads := range slices.Chunk(s.historyCalls(&r), historyScripts) {
		calls := reads // a chunk has no room, so an append copies it
		for _, shard := range beside {
			calls = append(calls, s.read(shard, "exists", keyMeta))
		}

		for i, o := range s.runApartBy(ctx, scriptApart, calls) {
			err := o.Err
			switch {
			case i >= len(reads) && err != nil:
				err = lost.Add(ctx, beside[i-len(reads)], err)
			case err != nil:
				err = lost.Add(ctx, first, err)
			case i < len(reads):
				err = addHistory(&sums, &r, o.Value)
			}
			if err != nil {
				return ports.HistoryReply{}, err
			}
		}

		if beside = nil; lost.Has(first) {
			break
		}
	}
	return historyReply(sums, &lost, asked)
}

// historyReply makes the reply from the read hours. It returns an error if none of the requested
// shards was reached.
func historyReply(sums *storekit.History, lost *storekit.Lost, asked []core.Shard) (ports.HistoryReply, error) {
	var reply ports.HistoryReply
	if sums != nil {
		reply.Minutes = sums.List()
	}
	if lost.Has(asked[0]) {
		reply.Unreached = asked[:1]
	}
	if _, err := lost.Shards(len(asked)); err != nil {
		return ports.HistoryReply{}, err
	}
	return reply, nil
}

// historyCalls returns the calls that read what a request includes: the days, or the minutes of each
// hour.
func (s *Store) historyCalls(r *ports.HistoryRequest) []exchange.Call {
	if r.Step == ports.Day {
		return []exchange.Call{{Script: daysScript, Keys: []any{s.daysKey(r.Queue)}, Args: []any{s.now()}}}
	}

	var calls []exchange.Call
	for _, key := range s.askedHours(r) {
		calls = append(calls, exchange.Call{
			Script: historyScript,
			Keys:   []any{key},
			Args:   []any{s.now(), int64(r.From), int64(r.To)},
		})
	}
	return calls
}

// askedHours returns the keys of the hours that a request includes: all hours unless the request
// surely includes fewer, and at least one.
func (s *Store) askedHours(r *ports.HistoryRequest) []any {
	first, last := max(0, int64(r.From))/hourMicros, (int64(r.To)-1)/hourMicros
	if r.From < 0 || r.To <= 0 || last-first >= historyHours-1 {
		return s.historyKeys(r.Queue)
	}
	keys := []any{s.historyKey(r.Queue, first)}
	for hour := first + 1; hour <= last; hour++ {
		keys = append(keys, s.historyKey(r.Queue, hour))
	}
	return keys
}

// addHistory adds the reply of a script of historyCalls. The first reply sets the present time, from
// which on the kept minutes are counted.
func addHistory(sums **storekit.History, request *ports.HistoryRequest, value any) error {
	r := record.ReplyOf(value)
	now := core.Instant(r.Int())
	if *sums == nil {
		*sums = storekit.NewHistory(*request, now)
	}
	if request.Step == ports.Day {
		return addDays(*sums, &r)
	}
	if !r.More() {
		return r.Err()
	}

	start := core.Instant(r.Int() * hourMicros)
	for r.More() {
		_ = r.Text()
		addBlock(*sums, start, []byte(r.Text()))
	}
	return r.Err()
}

// addDays adds the rest of the reply of the script days: see lua/lib/days.lua. It leaves out a day
// that can't be read.
func addDays(sums *storekit.History, r *record.Reply) error {
	const head = 3
	for r.More() {
		day, value := r.Text(), []byte(r.Text())
		n, err := strconv.ParseInt(day, 10, 64)
		if err == nil && n >= 0 && n <= int64(core.MaxInstant)/dayMicros && len(value) >= head {
			_ = sums.AddEncoded(core.Instant(n*dayMicros), value[head:])
		}
	}
	return r.Err()
}

// addBlock adds the records of a field: see lua/registry/record.lua. Like Record, it leaves out a
// record that can't be read, which hides no other.
func addBlock(sums *storekit.History, start core.Instant, block []byte) {
	const head = 11
	for len(block) > 0 {
		if len(block) < head || len(block) < head+int(block[1])<<8+int(block[2]) {
			return
		}
		minute, size := start+core.Instant(int64(block[0])*minuteMicros), int(block[1])<<8+int(block[2])
		_ = sums.AddEncoded(minute, block[head:head+size]) // a damaged record adds nothing
		block = block[head+size:]
	}
}
