package postgres_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// dbasStory does a bit of everything with a schema of its own, by a clock that stands still, and
// keeps its results: no setting of the server may change any of them.
type dbasStory struct {
	ctx   context.Context
	pool  *pgxpool.Pool
	store *postgres.Store
	turn  ports.TurnRequest
	seen  []string
	err   error
}

// tellStory returns a story's results, until its first error.
func tellStory(ctx context.Context, pool *pgxpool.Pool, schema string) ([]string, error) {
	now := time.Unix(1_800_000_000, 123_456_000)
	s := &dbasStory{ctx: ctx, pool: pool, store: postgres.New(pool, postgres.Options{
		Schema: schema, NoWakeups: true, VacuumEvery: -1, Clock: func() time.Time { return now },
	})}
	s.turn = ports.TurnRequest{Lease: ports.Lease{Shard: core.Shard{Queue: "orders"}, Owner: `o\wner`}, TTL: time.Hour}
	for _, chapter := range []func(){
		func() { s.see("migrate", nil, postgres.Migrate(ctx, pool, postgres.MigrateOptions{Schema: schema})) },
		s.push, s.work, s.look, s.act, s.look,
	} {
		if s.err == nil {
			chapter()
		}
	}
	return s.seen, s.err
}

// see keeps a call's result, and its error if it is the first.
func (s *dbasStory) see(call string, reply any, err error) {
	if err != nil && s.err == nil {
		s.err = fmt.Errorf("%s: %w", call, err)
	}
	text, broken := json.Marshal(reply)
	if broken != nil {
		panic(broken)
	}
	s.seen = append(s.seen, fmt.Sprintf("%s: %s", call, text))
}

// oddID and oddText have characters that a setting could cause to be read differently.
const (
	oddID   = `it's "odd" \ \\n {NULL,} Größe`
	oddText = `C:\new\table 'x' E'\001' NULL`
)

var oddData = []byte("\x00\xff\\x41\\101'\n")

func (s *dbasStory) push() {
	r, err := s.store.Declare(s.ctx, ports.DeclareRequest{Queue: "orders", Shards: 1, IndexIDs: true})
	s.see("declare", r, err)
	if err != nil {
		return
	}
	push := func(p ports.Producer, rule core.PushRule, entries ...core.Entry) {
		r, err := p.Push(s.ctx,
			ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Rule: rule, Entries: entries})
		s.see("push", r, err)
	}
	odd := core.Entry{ID: oddID, Payload: core.Payload{Data: oddData, Score: 0.1 + 0.2, Meta: oddData}}
	again := odd
	again.Score, again.When = 1e-300, core.In(time.Second)
	null := core.Entry{ID: "NULL", Payload: core.Payload{Data: []byte("NULL"), Score: 1.0 / 3}, When: core.At(1)}
	push(s.store, core.PushRule{}, odd)
	push(s.store, core.PushRule{Kind: core.Debounce}, again)
	push(s.store, core.PushRule{}, null, odd)
	var many []core.Entry
	for n := range 1200 {
		many = append(many, core.Entry{ID: fmt.Sprint("id-", n%7), Payload: core.Payload{
			Data: append(fmt.Appendf(nil, "%05d", n), bytes.Repeat([]byte{'x'}, 300)...), Score: float64(n) / 7}})
	}
	push(s.store, core.PushRule{}, many...)
	s.see("transaction", nil, pgx.BeginFunc(s.ctx, s.pool, func(tx pgx.Tx) error {
		tell := &dbasStory{ctx: s.ctx}
		r, err := s.store.Tx(tx).Push(s.ctx,
			ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{odd, null, again}})
		tell.see("push", r, err)
		s.seen = append(s.seen, tell.seen...)
		return tell.err
	}))
}

// next makes a turn.
func (s *dbasStory) next(want int, settle ...core.Settlement) []core.Claim {
	s.turn.Number++
	s.turn.Want, s.turn.Settlements = want, settle
	r, err := s.store.Turn(s.ctx, s.turn)
	s.see("turn", r, err)
	return r.Claims
}

// work claims jobs and settles them in several ways, and makes the other calls of a node.
func (s *dbasStory) work() {
	a, err := s.store.Acquire(s.ctx, ports.AcquireRequest{Shard: s.turn.Lease.Shard, Shards: 1, Generation: 1,
		Owner: s.turn.Lease.Owner, Attempt: 1, TTL: s.turn.TTL})
	s.see("acquire", a, err)
	s.turn.Lease.Token = a.Token
	claims := s.next(5)
	if len(claims) < 5 {
		return
	}
	s.turn.Number-- // as if its reply had been lost
	s.next(5)
	put, bury := failed(claims[1]), done(claims[2])
	put.PutBack.Failures, put.PutBack.Delay = core.Failures{{Text: oddText}}, time.Second
	bury.Rest, bury.Letter.Failures, bury.Letter.Group = core.Bury, core.Failures{{Text: oddText}}, oddText
	rest := done(claims[3])
	rest.Except = []core.PayloadDisposition{{Position: 0, Disposition: core.Bury}}
	rest.Letter.Failures, rest.Letter.Group = core.Failures{{Text: "why"}}, "why"
	s.next(2, done(claims[0]), put, bury, rest)
	s.see("settle in a transaction", nil, pgx.BeginFunc(s.ctx, s.pool, func(tx pgx.Tx) error {
		in := failed(claims[4])
		in.PutBack.Failures = core.Failures{{Text: oddText}}
		return s.store.Tx(tx).Settle(s.ctx, s.turn.Lease.Shard, []core.Settlement{in})
	}))
	r, err := s.store.Renew(s.ctx, ports.RenewRequest{Lease: s.turn.Lease, TTL: s.turn.TTL})
	s.see("renew", r, err)
	h, err := s.store.Heads(s.ctx, []core.Shard{s.turn.Lease.Shard})
	s.see("heads", h, err)
	p, err := s.store.Permit(s.ctx,
		ports.PermitRequest{Queue: "orders", Owner: oddID, Attempt: 1, Limit: 2, Want: 1, TTL: time.Minute})
	s.see("permit", p, err)
	t, err := s.store.Take(s.ctx, ports.TakeRequest{Queue: "orders", Takes: []ports.Take{
		{Key: oddID, Rate: core.Rate{Count: 3, Per: time.Second, Burst: 1}, Want: 5, Ahead: time.Second}, {Key: "NULL"},
	}})
	s.see("take", t, err)
	s.see("stop", nil, s.store.Stop(s.ctx, ports.StopRequest{Queue: "orders", Key: `a"b`, For: time.Minute}))
	l, err := s.store.Limits(s.ctx, ports.LimitsRequest{Queue: "orders"})
	s.see("limits", l, err)
	n, err := s.store.Announce(s.ctx, ports.AnnounceRequest{TTL: time.Minute, Node: ports.Node{
		Owner:  oddID,
		Name:   oddText,
		Queues: []string{"NULL", `a"b`},
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{{Queue: `a"b`}}}}})
	s.see("announce", n, err)
	s.see("record", nil, s.store.Record(s.ctx, ports.RecordRequest{Owner: oddID, Records: []ports.Record{
		{Queue: "orders", Minute: n.Now.Minute(), Stats: core.Stats{
			Processed: 3, WaitSquares: 0.1 + 0.2, RunSquares: 1e-300,
		}}}}))
}

// look makes the reading calls of an operator.
func (s *dbasStory) look() {
	page := ports.PageRequest{Queue: "orders", Payloads: 3}
	st, err := s.store.Stats(s.ctx, ports.StatsRequest{Queues: []string{"orders"}})
	s.see("stats", st, err)
	for by := ports.ByTime; by <= ports.RetryingByCount; by++ {
		j, err := s.store.Jobs(s.ctx, ports.JobsRequest{PageRequest: page, SortBy: by})
		s.see("jobs", j, err)
	}
	c, err := s.store.Claimed(s.ctx, page)
	s.see("claimed", c, err)
	m, err := s.store.Morgue(s.ctx, ports.MorgueRequest{PageRequest: page})
	s.see("morgue", m, err)
	g, err := s.store.Groups(s.ctx, ports.GroupsRequest{Queue: "orders", Limit: 9})
	s.see("groups", g, err)
	f, err := s.store.Find(s.ctx, ports.FindRequest{Queue: "orders", ID: oddID, Payloads: 1000})
	s.see("find", []any{f.Queued, f.Claim, f.DeadLetter, f.Standing}, err)
	n, err := s.store.Nodes(s.ctx)
	s.see("nodes", n, err)
	h, err := s.store.History(s.ctx, ports.HistoryRequest{Queue: "orders", From: n.Now - 3e8, To: n.Now + 3e8})
	s.see("history", h, err)
	_, err = s.store.Check(s.ctx)
	s.see("check", nil, err)
	s.see("ping", nil, s.store.Ping(s.ctx))
}

// act carries out the operators' actions.
func (s *dbasStory) act() {
	shard := s.turn.Lease.Shard
	see := func(call string, r ports.StepReply, err error) { s.see(call, r, err) }
	jobs := func(ids ...string) ports.JobStep { return ports.JobStep{Shard: shard, IDs: ids} }
	letters := ports.DeadLetterStep{Shard: shard, Before: core.MaxInstant, Limit: 10}
	s.see("pause", nil, s.store.Pause(s.ctx, "orders"))
	s.see("resume", nil, s.store.Resume(s.ctx, "orders"))
	r, err := s.store.Import(s.ctx, ports.ImportRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		DeadLetters: []core.DeadLetter{
			{ID: oddID, Group: oddText, Failures: core.Failures{{Text: oddText}}, Payloads: []core.Payload{{Data: oddData, Score: 0.1}}}},
	})
	see("import", r, err)
	r, err = s.store.Edit(s.ctx,
		ports.EditRequest{Shard: shard, ID: oddID, Old: oddData, New: append([]byte("new"), oddData...)})
	see("edit", r, err)
	r, err = s.store.Expedite(s.ctx, jobs("id-1", "id-2", "id-3"))
	see("expedite", r, err)
	r, err = s.store.Bury(s.ctx, jobs("id-1", "NULL"))
	see("bury", r, err)
	r, err = s.store.Delete(s.ctx, jobs("id-2"))
	see("delete", r, err)
	r, err = s.store.Cancel(s.ctx, ports.CancelRequest{Shard: shard, IDs: []string{"id-4", "id-5", "id-6"}})
	see("cancel", r, err)
	letters.Group = oddText
	r, err = s.store.Revive(s.ctx, letters)
	see("revive", r, err)
	s.next(3)
	letters.Group = ""
	r, err = s.store.Purge(s.ctx, letters)
	see("purge", r, err)
	counts, err := kit.Recounted(s.ctx, s.store, shard)
	s.see("recount", counts, err)
	s.see("release", nil, s.store.Release(s.ctx, s.turn.Lease))
	s.see("retire", nil, s.store.Retire(s.ctx, oddID))
}
