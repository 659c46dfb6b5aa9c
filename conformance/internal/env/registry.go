package env

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Recorded returns a record of the queue orders in the present minute.
func (e *Env) Recorded(s *core.Stats) ports.Record {
	return ports.Record{Queue: Orders, Minute: e.Now().Minute(), Stats: *s}
}

// Record records an owner's counts.
func (e *Env) Record(owner string, records ...ports.Record) {
	e.TB.Helper()
	e.Must(e.Store.Record(e.Ctx, ports.RecordRequest{Owner: owner, Records: records}), "Record")
}

// Measured returns statistics with a value in every kind of field. Their sums are exact.
func Measured(n uint64) *core.Stats {
	s := &core.Stats{Processed: n, Failed: n + 1}
	s.ObserveWait(time.Duration(n) * 250 * time.Millisecond)
	s.ObserveRun(time.Duration(n) * time.Second)
	s.ObserveRun(1 << 20 * time.Second)
	return s
}

// FivePermits is the limit of permits in most cases.
const FivePermits = 5

// Permit requests permits of the queue orders, with a new attempt.
func (e *Env) Permit(owner string, hold, want int) ports.PermitReply {
	e.TB.Helper()
	return e.PermitWith(e.PermitRequest(owner, hold, want))
}

// PermitWith makes a call for permits.
func (e *Env) PermitWith(r ports.PermitRequest) ports.PermitReply {
	e.TB.Helper()
	reply, err := e.Store.Permit(e.Ctx, r)
	e.Must(err, "Permit")
	return reply
}

// PermitRequest returns a call for permits with a new attempt.
func (e *Env) PermitRequest(owner string, hold, want int) ports.PermitRequest {
	e.attempts++
	return ports.PermitRequest{
		Queue:   Orders,
		Owner:   owner,
		Attempt: e.attempts,
		Limit:   FivePermits,
		Hold:    hold,
		Want:    want,
		TTL:     TTL,
	}
}

// UndeclaredCalls returns the errors of all methods of ports.ShardStore that refuse an unknown
// queue, except Push.
func (e *Env) UndeclaredCalls(queue string) map[string]error {
	ctx, s := e.Ctx, core.Shard{Queue: queue}
	lease := ports.Lease{Shard: s, Owner: "n1", Token: 1}
	page := ports.PageRequest{Queue: queue}

	errs := map[string]error{
		"Release": e.Store.Release(ctx, lease),
		"Pause":   e.Store.Pause(ctx, queue),
		"Resume":  e.Store.Resume(ctx, queue),
		"Forget":  e.Store.Forget(ctx, queue),
		"Configure": e.Store.Configure(ctx, ports.ConfigureRequest{
			Queue:    queue,
			Settings: core.Settings{Version: 1},
		}),
	}

	_, errs["Acquire"] = e.Store.Acquire(ctx, ports.AcquireRequest{
		Shard:      s,
		Shards:     1,
		Generation: 1,
		Owner:      "n1",
		Attempt:    1,
		TTL:        TTL,
	})
	_, errs["Turn"] = e.Store.Turn(ctx, ports.TurnRequest{Lease: lease, Number: 1, TTL: TTL, Want: 1})
	_, errs["Renew"] = e.Store.Renew(ctx, ports.RenewRequest{Lease: lease, TTL: TTL})
	_, errs["Heads"] = e.Store.Heads(ctx, []core.Shard{s})
	_, errs["Permit"] = e.Store.Permit(ctx, ports.PermitRequest{
		Queue:   queue,
		Owner:   "n1",
		Attempt: 1,
		Limit:   1,
		Hold:    1,
		Want:    1,
		TTL:     TTL,
	})

	_, errs["Take"] = e.Store.Take(ctx, ports.TakeRequest{Queue: queue, Takes: []ports.Take{{Want: 1}}})
	errs["Stop"] = e.Store.Stop(ctx, ports.StopRequest{Queue: queue, For: time.Second})
	_, errs["Limits"] = e.Store.Limits(ctx, ports.LimitsRequest{Queue: queue})
	_, errs["Track"] = e.Store.Track(ctx, ports.TrackRequest{Queue: queue, ID: "a"})
	_, errs["Tracked"] = e.Store.Tracked(ctx, queue)
	_, errs["QuarantinedShards"] = e.Store.QuarantinedShards(ctx, ports.QuarantinedShardsRequest{Queue: queue})
	_, errs["Quarantined"] = e.Store.Quarantined(ctx, ports.QuarantineRequest{Shard: s})
	_, errs["Discard"] = e.Store.Discard(ctx, ports.DiscardRequest{Shard: s, Keys: []string{"x"}})
	_, errs["Recount"] = e.Store.Recount(ctx, ports.RecountRequest{Shard: s})
	_, errs["Groups"] = e.Store.Groups(ctx, ports.GroupsRequest{Queue: queue})

	_, errs["Stats"] = e.Store.Stats(ctx, ports.StatsRequest{Queues: []string{queue}})
	_, errs["History"] = e.Store.History(ctx, ports.HistoryRequest{Queue: queue})
	_, errs["Jobs"] = e.Store.Jobs(ctx, ports.JobsRequest{PageRequest: page})
	_, errs["Claimed"] = e.Store.Claimed(ctx, page)
	_, errs["Past"] = e.Store.Past(ctx, page)
	_, errs["Morgue"] = e.Store.Morgue(ctx, ports.MorgueRequest{PageRequest: page})
	_, errs["Find"] = e.Store.Find(ctx, ports.FindRequest{Queue: queue, ID: "a", Payloads: 1000})
	_, errs["Pending"] = e.Store.Pending(ctx, ports.PendingRequest{Queue: queue, IDs: []string{"a"}})

	_, errs["Expedite"] = e.Store.Expedite(ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	_, errs["Bury"] = e.Store.Bury(ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	_, errs["Delete"] = e.Store.Delete(ctx, ports.JobStep{Shard: s, IDs: []string{"a"}})
	_, errs["Cancel"] = e.Store.Cancel(ctx, ports.CancelRequest{Shard: s, IDs: []string{"a"}})
	_, errs["Revive"] = e.Store.Revive(ctx, ports.DeadLetterStep{Shard: s, Before: e.Now()})
	_, errs["Purge"] = e.Store.Purge(ctx, ports.DeadLetterStep{Shard: s, Before: e.Now()})
	_, errs["Edit"] = e.Store.Edit(ctx, ports.EditRequest{Shard: s, ID: "a", Old: []byte("x"), New: []byte("y")})

	_, errs["ChangeSchedules"] = e.Store.ChangeSchedules(ctx, ports.ChangeSchedulesRequest{
		Shard:      s,
		Shards:     1,
		Generation: 1,
	})
	_, errs["Ticks"] = e.Store.Ticks(ctx, ports.TicksRequest{Shards: []core.Shard{s}})
	_, errs["Schedules"] = e.Store.Schedules(ctx, ports.SchedulesRequest{Queue: queue})
	_, errs["ScheduleNames"] = e.Store.ScheduleNames(ctx, ports.ScheduleNamesRequest{Queue: queue})

	_, errs["Import"] = e.Store.Import(ctx, ports.ImportRequest{
		Shard:       s,
		Shards:      1,
		Generation:  1,
		DeadLetters: []core.DeadLetter{Letter("a", 1, Pay("p", 1))},
	})

	return errs
}
