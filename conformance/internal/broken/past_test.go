package broken

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

func brokenPasts() []brokenStore {
	return []brokenStore{
		{"records nothing", "past/has a record of a done job", wrapped(recordsNothing)},
		{"takes the time of a record from the caller", "past/has a record of a done job", wrapped(changesPast(
			func(p *core.Past) { p.DoneAt = p.Started }))},
		{"counts one payload of each job", "past/has a record of a done job", wrapped(changesPast(
			func(p *core.Past) { p.Payloads = 1 }))},
		{"records the results of other jobs", "past/has a record of each job of a turn", wrapped(swapsResults)},
		{"records nothing beside a failed job", "past/has a record of jobs beside others", wrapped(recordsPlainTurns)},
		{"records nothing while paused", "past/has a record of large, paused and cancelled jobs", wrapped(recordsUnpaused)},
		{"ends results at NUL", "past/has any result", wrapped(endsResultsAtNUL)},
		{"truncates results", "past/has any result", wrapped(changesPast(
			func(p *core.Past) { p.Result = p.Result[:min(len(p.Result), core.MaxResultBytes-1)] }))},
		{"keeps half microseconds", "past/is stored within its ranges", wrapped(changesPast(
			func(p *core.Past) { p.Took += time.Nanosecond }))},
		{"keeps the first record", "past/is that of the last run", wrapped(keepsFirstRecords)},
		{"keeps the latest record", "past/is that of the last run after a clock that steps back", wrapped(keepsLatestRecords)},
		{"records failed jobs", "past/is not left by a job that is not done", wrapped(recordsFailures)},
		{"records skipped settlements", "past/is not left by a skipped settlement", wrapped(recordsSkipped)},
		{"records all results of a turn", "past/is not left by a deferred settlement", wrapped(settlesAll)},
		{"records repeated turns", "past/is there once when a turn is repeated", wrapped(recordsRepeats)},
		{"takes any record", "past/is refused if it is invalid", wrapped(takesAnyRecord)},
		{"always keeps records", "past/is not kept by a turn that keeps none", wrapped(keepsMore(
			func(k *core.KeepPast) { k.Age = max(k.Age, time.Hour) }))},
		{"keeps records too long", "past/goes by age", wrapped(keepsMore(func(k *core.KeepPast) { k.Age += time.Second }))},
		{"keeps records too short", "past/goes by age", wrapped(keepsMore(func(k *core.KeepPast) { k.Age -= time.Second }))},
		{"keeps too many records", "past/goes by count", wrapped(keepsMore(func(k *core.KeepPast) { k.Count++ }))},
		{"keeps all records", "past/goes by count", wrapped(keepsMore(func(k *core.KeepPast) { k.Count = 0 }))},
		{"keeps too many bytes", "past/goes by the bytes of results", wrapped(keepsMore(
			func(k *core.KeepPast) { k.Bytes++ }))},
		{"removes all records in a step", "past/goes in steps", wrapped(removesAtOnce)},
		{"removes no record in a queue that keeps none", "past/goes when no record is kept any more", wrapped(keepsOld)},
		{"removes the record of a pushed id", "past/is not changed by pushes and operators", wrapped(hidesPushed)},
		{"lists results", "past/is listed by time", wrapped(listsResults)},
		{"lists records of one time only once", "past/is listed by time", wrapped(listsEachTimeOnce)},
		{"lists records from the start", "past/is listed from a time", wrapped(ignoresFrom)},
		{"keeps the records of a forgotten queue", "past/is forgotten with its queue", wrapped(keepsForgotten)},
		{"records nothing outside of turns", "settler/records a job that is done", wrapped(settlesUnrecorded)},
		{"records before the commit", "transaction/records a job that is done", wrapped(
			func(s full) full { return recordsAtOnce{showsRecords(s, map[string]core.Past{})} })},
		{"hides shards whose records can't be reached", "unreached/lists return the entries of the other shards", wrapped(hidesUnreachedPast)},
	}
}

// changesPast changes what Find shows of a record.
func changesPast(change func(*core.Past)) func(full) full {
	return func(s full) full {
		return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
			found, err := s.Find(ctx, r)
			if found.Past != nil {
				change(found.Past)
			}
			return found, err
		})
	}
}

// shownRecords is a store that shows other records beside its own.
type shownRecords struct {
	full
	records map[string]core.Past
}

// showsRecords shows these records too, by id.
func showsRecords(s full, records map[string]core.Past) shownRecords {
	h := replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		if p, shown := records[r.ID]; shown {
			found.Past = &p
		}
		return found, err
	})
	h = replace(h, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		page, err := s.Past(ctx, r)
		for _, id := range slices.Sorted(maps.Keys(records)) {
			page.Past = append(page.Past, ports.PastView{Past: records[id]})
		}
		return page, err
	})
	return shownRecords{h, records}
}

// recordsWhere changes the settlements of turns that have a record.
func recordsWhere(s full, change func(ctx context.Context, r *ports.TurnRequest, x *core.Settlement)) full {
	return beforeTurn(s, func(ctx context.Context, r *ports.TurnRequest) {
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			if x := &r.Settlements[i]; x.Past != nil {
				change(ctx, r, x)
			}
		}
	})
}

func recordsNothing(s full) full {
	return recordsWhere(s, func(_ context.Context, _ *ports.TurnRequest, x *core.Settlement) { x.Past = nil })
}

// swapsResults records the results of a turn in reverse.
func swapsResults(s full) full {
	return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) {
		var records []*core.Past
		for _, x := range r.Settlements {
			if x.Past != nil {
				records = append(records, x.Past)
			}
		}
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			if x := &r.Settlements[i]; x.Past != nil {
				x.Past, records = records[len(records)-1], records[:len(records)-1]
			}
		}
	})
}

func recordsPlainTurns(s full) full {
	return recordsWhere(s, func(_ context.Context, r *ports.TurnRequest, x *core.Settlement) {
		if slices.ContainsFunc(r.Settlements, func(x core.Settlement) bool { return !x.Plain() }) {
			x.Past = nil
		}
	})
}

func recordsUnpaused(s full) full {
	return recordsWhere(s, func(ctx context.Context, r *ports.TurnRequest, x *core.Settlement) {
		if found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: x.ID}); err == nil && found.Standing.Paused {
			x.Past = nil
		}
	})
}

func endsResultsAtNUL(s full) full {
	return changesPast(func(p *core.Past) {
		if at := slices.Index(p.Result, 0); at >= 0 {
			p.Result = p.Result[:at]
		}
	})(s)
}

func keepsFirstRecords(s full) full {
	return recordsWhere(s, func(ctx context.Context, r *ports.TurnRequest, x *core.Settlement) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: x.ID})
		if err == nil && found.Past != nil {
			x.Past = nil
		}
	})
}

func keepsLatestRecords(s full) full {
	return recordsWhere(s, func(ctx context.Context, r *ports.TurnRequest, x *core.Settlement) {
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Lease.Shard.Queue, ID: x.ID})
		if err == nil && found.Past != nil && found.Past.DoneAt > found.Standing.Now {
			x.Past = nil
		}
	})
}

// recordsFailures shows a record of each job that was put back.
func recordsFailures(s full) full {
	shown := showsRecords(s, map[string]core.Past{})
	return afterTurn(shown, func(r ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		for _, x := range r.Settlements {
			if !x.Plain() {
				shown.records[x.ID] = core.Past{ID: x.ID, DoneAt: reply.Now}
			}
		}
	})
}

// recordsSkipped shows the records of settlements that were skipped.
func recordsSkipped(s full) full {
	shown := showsRecords(s, map[string]core.Past{})
	return afterTurn(shown, func(r ports.TurnRequest, reply *ports.TurnReply, _ bool) {
		for _, i := range reply.Skipped {
			if x := r.Settlements[i]; x.Past != nil {
				shown.records[x.ID] = x.Past.Stored(x.ID, reply.Now)
			}
		}
	})
}

// recordsRepeats shows the records of turns that are repeated.
func recordsRepeats(s full) full {
	shown := showsRecords(s, map[string]core.Past{})
	return afterTurn(shown, func(r ports.TurnRequest, reply *ports.TurnReply, again bool) {
		for _, x := range r.Settlements {
			if again && x.Past != nil {
				shown.records[x.ID] = x.Past.Stored(x.ID, reply.Now)
			}
		}
	})
}

func takesAnyRecord(s full) full {
	return recordsWhere(s, func(_ context.Context, _ *ports.TurnRequest, x *core.Settlement) {
		if !x.Plain() || len(x.Past.Result) > core.MaxResultBytes {
			x.Past = nil
		}
	})
}

// keepsMore changes what turns keep.
func keepsMore(change func(*core.KeepPast)) func(full) full {
	return func(s full) full {
		return beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) { change(&r.Keep) })
	}
}

// removesAtOnce hides the records beyond Count that are left of each turn.
func removesAtOnce(s full) full {
	most := int64(0)
	h := beforeTurn(s, func(_ context.Context, r *ports.TurnRequest) { most = r.Keep.Count })
	return replace(h, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		page, err := s.Past(ctx, r)
		if n := int64(len(page.Past)); most > 0 && n > most {
			page.Past = page.Past[n-most:]
		}
		return page, err
	})
}

// keepsOld shows each record that was found by a page for ever.
func keepsOld(s full) full {
	var all []ports.PastView
	return replace(s, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		page, err := s.Past(ctx, r)
		if len(page.Past) > len(all) {
			all = page.Past
		}
		page.Past = all
		return page, err
	})
}

// hidesPushed hides the record of each id that was pushed after it was done.
func hidesPushed(s full) full {
	return replace(s, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := s.Find(ctx, r)
		if found.Queued != nil {
			found.Past = nil
		}
		return found, err
	})
}

// listsResults lists records with their results.
func listsResults(s full) full {
	return replace(s, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		page, err := s.Past(ctx, r)
		for i := range page.Past {
			if found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: page.Past[i].ID}); err == nil && found.Past != nil {
				page.Past[i].Result = found.Past.Result
			}
		}
		return page, err
	})
}

// listsEachTimeOnce skips records at the time where a page ends.
func listsEachTimeOnce(s full) full {
	return replace(s, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		page, err := s.Past(ctx, r)
		if page.Next != (ports.Cursor{}) && !r.Descending {
			page.Next.ID = "zzz"
		}
		return page, err
	})
}

func ignoresFrom(s full) full {
	return replace(s, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		r.From = nil
		return s.Past(ctx, r)
	})
}

func keepsForgotten(s full) full {
	shown := showsRecords(s, map[string]core.Past{})
	return replaceErr(shown, "Forget", func(ctx context.Context, queue string) error {
		page, err := s.Past(ctx, ports.PageRequest{Queue: queue})
		if err == nil {
			for _, p := range page.Past {
				shown.records[p.ID] = p.Past
			}
		}
		return s.Forget(ctx, queue)
	})
}

func settlesUnrecorded(s full) full {
	return replaceErr(s, "Settle", func(ctx context.Context, r storekit.SettleRequest) error {
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			r.Settlements[i].Past = nil
		}
		return s.Settle(ctx, r.Shard, r.Settlements)
	})
}

// recordsAtOnce shows what a transaction records before it commits.
type recordsAtOnce struct{ shownRecords }

func (s recordsAtOnce) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return recordingAtOnce{tx, s.shownRecords}, err
}

type recordingAtOnce struct {
	env.Transaction
	store shownRecords
}

func (tx recordingAtOnce) Settle(ctx context.Context, at core.Shard, settle []core.Settlement) error {
	for _, x := range settle {
		if x.Past != nil {
			tx.store.records[x.ID] = x.Past.Stored(x.ID, env.Start)
		}
	}
	return tx.Transaction.Settle(ctx, at, settle)
}

func hidesUnreachedPast(s full) full {
	return replace(s, "Past", func(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
		page, err := s.Past(ctx, r)
		page.Unreached = nil
		return page, err
	})
}
