package env

import (
	"fmt"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// BuryIn buries a job of each id in a group, in one call, a second after the previous call.
func (e *Env) BuryIn(group string, ids ...string) {
	e.TB.Helper()
	e.BuryAt(e.Shard, group, ids...)
}

// BuryAt is BuryIn for any shard.
func (e *Env) BuryAt(at core.Shard, group string, ids ...string) {
	e.TB.Helper()
	e.Clock.Advance(time.Second)
	for _, id := range ids {
		e.PushTo(at.Queue, EntryAt(id, "p", 1, 0), EntryAt(id, "q", 2, 0))
	}
	h := e.AcquireAt(at, "burier")
	h.Settle(SettleAll(h.Claim(len(ids)), func(c core.Claim) core.Settlement { return BuriedAs(c, group) })...)
	h.Release()
}

// Groups lists groups of dead letters.
func (e *Env) Groups(r ports.GroupsRequest) ports.GroupsReply {
	e.TB.Helper()
	reply, err := e.Store.Groups(e.Ctx, r)
	e.Must(err, "Groups")
	return reply
}

// HaveGroups checks the groups of the queue orders, and that they count all dead letters.
func (e *Env) HaveGroups(what string, want ...core.Group) {
	e.TB.Helper()
	got := e.Groups(ports.GroupsRequest{Queue: Orders})
	e.Same("the groups "+what, got.Groups, want)
	e.Same("how many groups there are "+what, got.Total, len(want))
	e.Same("how many dead letters they have "+what, got.Dead, e.Counts().Dead)
	e.Same("the store's clock", got.Now, e.Now())
}

// Seconds returns the instant n seconds after the start.
func Seconds(n int) core.Instant { return Start.Add(time.Duration(n) * time.Second) }

// GroupOf returns a group whose first and last times are seconds after the start.
func GroupOf(name string, count int64, first, last int) core.Group {
	return core.Group{Name: name, Count: count, First: Seconds(first), Last: Seconds(last)}
}

// Letter returns a dead letter that changed at the given second after the start. Its error and its
// group name that second.
func Letter(id string, at int, payloads ...core.Payload) core.DeadLetter {
	return core.DeadLetter{
		ID:        id,
		ChangedAt: Seconds(at),
		Failures:  Failures(fmt.Sprint("error at ", at)),
		Group:     fmt.Sprint("group at ", at),
		Payloads:  payloads,
	}
}

// ImportRequest returns an import of dead letters.
func (e *Env) ImportRequest(letters ...core.DeadLetter) ports.ImportRequest {
	q := e.Declared[Orders]
	return ports.ImportRequest{Shard: e.Shard, Shards: q.Shards, Generation: q.Generation, DeadLetters: letters}
}

// BringIn imports dead letters. It returns the number of handled dead letters.
func (e *Env) BringIn(letters ...core.DeadLetter) int {
	e.TB.Helper()
	return e.bringIn(len(letters), func(done int) ports.ImportRequest { return e.ImportRequest(letters[done:]...) })
}

// bringIn imports n entries. If a call has reached only some, it continues with the others. request
// returns an import of those behind the given number. It returns the number of handled entries.
func (e *Env) bringIn(n int, request func(done int) ports.ImportRequest) (handled int) {
	e.TB.Helper()
	for done := 0; ; {
		reply, err := e.Store.Import(e.Ctx, request(done))
		e.Must(err, "Import")
		handled += reply.Handled
		if done += reply.Reached; done == n {
			return handled
		}
		if reply.Reached == 0 {
			e.TB.Fatalf("Import has reached none of %d entries\nthe rule: %s", n-done, e.Rule)
		}
	}
}

// ImportJobs returns an import of jobs.
func (e *Env) ImportJobs(jobs ...core.Job) ports.ImportRequest {
	r := e.ImportRequest()
	r.Jobs = jobs
	return r
}

// BringInJobs imports jobs.
func (e *Env) BringInJobs(jobs ...core.Job) {
	e.TB.Helper()
	handled := e.bringIn(len(jobs), func(done int) ports.ImportRequest { return e.ImportJobs(jobs[done:]...) })
	e.Same("how many jobs are handled", handled, len(jobs))
}
