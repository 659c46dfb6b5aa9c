package postgres_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// onStandby is a primary with an entry of every kind, and a store on its hot standby.
type onStandby struct {
	*workbench
	standby *postgres.Store
	pair    *testservers.PostgresPair
	claims  []core.Claim
}

func newOnStandby(t *testing.T) *onStandby {
	t.Helper()
	pair := testservers.PostgresWithStandby(t)
	o := &onStandby{workbench: workbenchOn(t, pair.Primary, time.Hour), pair: pair}
	o.standby = postgres.New(pair.Standby, postgres.Options{Schema: o.schema})
	o.must(o.push(o.store, "claimed"))
	o.acquire("owner")
	o.claims = o.next(1).Claims
	o.must(o.push(o.store, "queued"))
	o.must(pgx.BeginFunc(t.Context(), pair.Primary, func(tx pgx.Tx) error { return o.push(o.store.Tx(tx), "waits") }))
	_, err := o.store.Import(t.Context(), ports.ImportRequest{
		Shard:      o.turn.Lease.Shard,
		Shards:     1,
		Generation: 1,
		DeadLetters: []core.DeadLetter{
			{ID: "dead", Group: "why", Failures: core.Failures{{Text: "why"}}, Payloads: []core.Payload{{Data: []byte("x")}}}},
	})
	o.must(err)
	_, err = o.store.Announce(t.Context(),
		ports.AnnounceRequest{Node: ports.Node{Owner: "owner", Name: "n1"}, TTL: time.Hour})
	o.must(err)
	o.must(o.store.Audit(t.Context(), ports.Action{ID: "0", Verb: "pause"}))
	o.must(o.store.Record(t.Context(), ports.RecordRequest{Owner: "owner", Records: []ports.Record{
		{Queue: "orders", Minute: core.InstantOf(time.Now()).Minute(), Stats: core.Stats{Processed: 7}}}}))
	return o
}

// looks are the port's read-only calls. Each returns a value from its reply, to which rows that are
// not yet merged do not count.
func (o *onStandby) looks() map[string]func(context.Context) (any, error) {
	s, page := o.standby, ports.PageRequest{Queue: "orders"}
	return map[string]func(context.Context) (any, error){
		"Queues": func(ctx context.Context) (any, error) { q, err := s.Queues(ctx); return len(q), err },
		"Actions": func(ctx context.Context) (any, error) {
			a, err := s.Actions(ctx, ports.ActionsRequest{})
			return len(a), err
		},
		"Nodes": func(ctx context.Context) (any, error) { r, err := s.Nodes(ctx); return len(r.Nodes), err },
		"Stats": func(ctx context.Context) (any, error) {
			q, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
			if err != nil {
				return nil, err
			}
			return []int64{q[0].Fresh, q[0].Claimed, q[0].Dead}, nil
		},
		"History": func(ctx context.Context) (any, error) {
			h, err := s.History(ctx, ports.HistoryRequest{Queue: "orders"})
			var processed uint64
			for i := range h.Minutes {
				processed += h.Minutes[i].Processed
			}
			return processed, err
		},
		"Jobs": func(ctx context.Context) (any, error) {
			p, err := s.Jobs(ctx, ports.JobsRequest{PageRequest: page})
			return len(p.Jobs), err
		},
		"Claimed": func(ctx context.Context) (any, error) { p, err := s.Claimed(ctx, page); return len(p.Claims), err },
		"Morgue": func(ctx context.Context) (any, error) {
			p, err := s.Morgue(ctx, ports.MorgueRequest{PageRequest: page})
			return len(p.DeadLetters), err
		},
		"Past": func(ctx context.Context) (any, error) { p, err := s.Past(ctx, page); return len(p.Past), err },
		"Groups": func(ctx context.Context) (any, error) {
			g, err := s.Groups(ctx, ports.GroupsRequest{Queue: "orders", Limit: 10})
			return g.Dead, err
		},
		"Find": func(ctx context.Context) (any, error) {
			f, err := s.Find(ctx, ports.FindRequest{Queue: "orders", ID: "queued", Payloads: 1000})
			return f.Queued != nil, err
		},
		"Pending": func(ctx context.Context) (any, error) {
			p, err := s.Pending(ctx, ports.PendingRequest{Queue: "orders", IDs: []string{"queued"}})
			return len(p.IDs), err
		},
		"QuarantinedShards": func(ctx context.Context) (any, error) {
			q, err := s.QuarantinedShards(ctx, ports.QuarantinedShardsRequest{Queue: "orders"})
			return len(q.Shards), err
		},
		"Quarantined": func(ctx context.Context) (any, error) {
			p, err := s.Quarantined(ctx, ports.QuarantineRequest{Shard: o.turn.Lease.Shard})
			return len(p.Records), err
		},
		"Tracked": func(ctx context.Context) (any, error) {
			t, err := s.Tracked(ctx, "orders")
			return len(t), err
		},
		"Limits": func(ctx context.Context) (any, error) {
			l, err := s.Limits(ctx, ports.LimitsRequest{Queue: "orders"})
			return len(l.Limits), err
		},
		"Schedules": func(ctx context.Context) (any, error) {
			p, err := s.Schedules(ctx, ports.SchedulesRequest{Queue: "orders"})
			return len(p.Schedules), err
		},
		"ScheduleNames": func(ctx context.Context) (any, error) {
			p, err := s.ScheduleNames(ctx, ports.ScheduleNamesRequest{Queue: "orders"})
			return len(p.Names), err
		},
		"Ticks": func(ctx context.Context) (any, error) {
			t, err := s.Ticks(ctx, ports.TicksRequest{Shards: []core.Shard{o.turn.Lease.Shard}})
			return len(t.Shards), err
		},
		"StoreID": func(ctx context.Context) (any, error) {
			id, err := s.StoreID(ctx)
			return id != "", err
		},
	}
}

// writes are all other calls of the port, in arguments that the primary accepts.
func (o *onStandby) writes() map[string]func(context.Context) error {
	s, lease := o.standby, o.turn.Lease
	turn := o.turn
	turn.Number, turn.Settlements = turn.Number+1, []core.Settlement{done(o.claims[0])}
	jobs := ports.JobStep{Shard: lease.Shard, IDs: []string{"queued", "waits"}}
	letters := ports.DeadLetterStep{Shard: lease.Shard, DeadLetters: []ports.DeadLetterRef{{ID: "dead"}}}
	step := func(call func(context.Context, ports.JobStep) (ports.StepReply, error)) func(context.Context) error {
		return func(ctx context.Context) error { _, err := call(ctx, jobs); return err }
	}
	return map[string]func(context.Context) error{
		"Ping": s.Ping,
		"Declare": func(ctx context.Context) error {
			_, err := s.Declare(ctx, ports.DeclareRequest{Queue: "more", Shards: 1})
			return err
		},
		"Push":      func(ctx context.Context) error { return pushOn(ctx, s, "new") },
		"Push many": func(ctx context.Context) error { return pushOn(ctx, s, "new", "newer") },
		"Push in a transaction": func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, o.pair.Standby, func(tx pgx.Tx) error { return pushOn(ctx, s.Tx(tx), "new") })
		},
		"Settle in a transaction": func(ctx context.Context) error {
			return pgx.BeginFunc(ctx, o.pair.Standby, func(tx pgx.Tx) error {
				return s.Tx(tx).Settle(ctx, lease.Shard, turn.Settlements)
			})
		},
		"Acquire": func(ctx context.Context) error {
			_, err := s.Acquire(ctx,
				ports.AcquireRequest{
					Shard:      lease.Shard,
					Shards:     1,
					Generation: 1,
					Owner:      "owner",
					Attempt:    2,
					TTL:        turn.TTL,
				})
			return err
		},
		"Turn": func(ctx context.Context) error { _, err := s.Turn(ctx, turn); return err },
		"Renew": func(ctx context.Context) error {
			_, err := s.Renew(ctx, ports.RenewRequest{Lease: lease, TTL: turn.TTL})
			return err
		},
		"Release": func(ctx context.Context) error { return s.Release(ctx, lease) },
		"Heads":   func(ctx context.Context) error { _, err := s.Heads(ctx, []core.Shard{lease.Shard}); return err },
		"Permit": func(ctx context.Context) error {
			_, err := s.Permit(ctx,
				ports.PermitRequest{Queue: "orders", Owner: "owner", Attempt: 1, Limit: 1, Want: 1, TTL: turn.TTL})
			return err
		},
		"Take": func(ctx context.Context) error {
			_, err := s.Take(ctx, ports.TakeRequest{Queue: "orders", Takes: []ports.Take{{Want: 1}}})
			return err
		},
		"Stop": func(ctx context.Context) error {
			return s.Stop(ctx, ports.StopRequest{Queue: "orders", For: time.Minute})
		},
		"Announce": func(ctx context.Context) error {
			_, err := s.Announce(ctx, ports.AnnounceRequest{Node: ports.Node{Owner: "other"}, TTL: turn.TTL})
			return err
		},
		"Retire":    func(ctx context.Context) error { return s.Retire(ctx, "owner") },
		"DrainNode": func(ctx context.Context) error { return s.DrainNode(ctx, "owner", true) },
		"Audit":     func(ctx context.Context) error { return s.Audit(ctx, ports.Action{ID: "1", Verb: "pause"}) },
		"Record": func(ctx context.Context) error {
			return s.Record(ctx, ports.RecordRequest{
				Owner: "owner",
				Records: []ports.Record{{ // newer than what is stored, or it needs no call that writes
					Queue:  "orders",
					Minute: core.InstantOf(time.Now().Truncate(time.Minute)),
					Stats:  core.Stats{Processed: 100},
				}},
			})
		},
		"Pause":  func(ctx context.Context) error { return s.Pause(ctx, "orders") },
		"Resume": func(ctx context.Context) error { return s.Resume(ctx, "orders") },
		"Forget": func(ctx context.Context) error { return s.Forget(ctx, "orders") },
		"SetMerge": func(ctx context.Context) error {
			return s.SetMerge(ctx, ports.SetMergeRequest{Queue: "orders", Merge: core.MergeRule{Stays: core.Highest}})
		},
		"Configure": func(ctx context.Context) error {
			return s.Configure(ctx, ports.ConfigureRequest{Queue: "orders", Settings: core.Settings{Version: 1}})
		},
		"ChangeSchedules": func(ctx context.Context) error {
			_, err := s.ChangeSchedules(ctx, ports.ChangeSchedulesRequest{
				Shard: lease.Shard, Shards: 1, Generation: 1,
				Changes: []ports.ScheduleChange{{
					ScheduleKey: core.ScheduleKey{ID: "queued", Name: "hourly"}, Revision: ports.AnyRevision,
				}},
			})
			return err
		},
		"SetStoreID": func(ctx context.Context) error { return s.SetStoreID(ctx, "another") },
		"Discard": func(ctx context.Context) error {
			_, err := s.Discard(ctx, ports.DiscardRequest{Shard: lease.Shard, Keys: []string{"queued"}})
			return err
		},
		"Track": func(ctx context.Context) error {
			_, err := s.Track(ctx, ports.TrackRequest{Queue: "orders", ID: "claimed"})
			return err
		},
		"Recount":  func(ctx context.Context) error { _, err := kit.Recounted(ctx, s, lease.Shard); return err },
		"Expedite": step(s.Expedite), "Bury": step(s.Bury), "Delete": step(s.Delete),
		"Cancel": func(ctx context.Context) error {
			_, err := s.Cancel(ctx, ports.CancelRequest{Shard: lease.Shard, IDs: []string{"claimed"}})
			return err
		},
		"Revive": func(ctx context.Context) error { _, err := s.Revive(ctx, letters); return err },
		"Purge":  func(ctx context.Context) error { _, err := s.Purge(ctx, letters); return err },
		"Edit": func(ctx context.Context) error {
			_, err := s.Edit(ctx, ports.EditRequest{Shard: lease.Shard, ID: "dead", Old: []byte("x"), New: []byte("y")})
			return err
		},
		"Import": func(ctx context.Context) error {
			_, err := s.Import(ctx, ports.ImportRequest{
				Shard:      lease.Shard,
				Shards:     1,
				Generation: 1,
				DeadLetters: []core.DeadLetter{
					{ID: "more", Group: "why", Payloads: []core.Payload{{Data: []byte("x")}}}},
			})
			return err
		},
		"Import of jobs": func(ctx context.Context) error {
			_, err := s.Import(ctx, ports.ImportRequest{Shard: lease.Shard, Shards: 1, Generation: 1, Jobs: []core.Job{
				{ID: "more", State: core.State{RetryCount: -1}, Payloads: []core.Payload{{Data: []byte("x")}}}}})
			return err
		},
		"Wakeups": func(ctx context.Context) error { _, err := s.Wakeups(ctx, []core.Shard{lease.Shard}); return err },
	}
}

func pushOn(ctx context.Context, p ports.Producer, ids ...string) error {
	r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
	for _, id := range ids {
		r.Entries = append(r.Entries, entriesOf(id)...)
	}
	_, err := p.Push(ctx, r)
	return err
}

// operatorsCall reports whether a call of the port that writes is an operator's.
func operatorsCall(name string) bool {
	_, of := reflect.TypeFor[ports.Operator]().MethodByName(name)
	others := []string{"Import of jobs", "DrainNode", "Audit", "Track", "Discard", "SetStoreID"}
	return of || slices.Contains(others, name)
}

// A hot standby shows everything that has been merged to readers, also through an inspector, and
// refuses each call that writes with an error that names the cure.
func TestPostgresAHotStandbyCanBeLookedAt(t *testing.T) {
	tier.Long(t, "starts a standby")
	t.Parallel()
	o := newOnStandby(t)
	looks, writes := o.looks(), o.writes()
	for method := range reflect.TypeFor[ports.ShardStore]().Methods() {
		if looks[method.Name] == nil && writes[method.Name] == nil {
			t.Errorf("the port has %s, which this test does not call", method.Name)
		}
	}
	want := map[string]any{
		"Queues":            1,
		"Nodes":             1,
		"Actions":           1,
		"Stats":             []int64{1, 1, 1},
		"History":           uint64(7),
		"Jobs":              1,
		"Claimed":           1,
		"Morgue":            1,
		"Past":              0,
		"Groups":            int64(1),
		"Find":              true,
		"Pending":           1,
		"QuarantinedShards": 0,
		"Quarantined":       0,
		"Tracked":           0,
		"Schedules":         0,
		"ScheduleNames":     0,
		"Ticks":             1,
		"StoreID":           true,
		"Limits":            0,
	}
	got := map[string]any{}
	for name, look := range looks {
		shown, err := look(t.Context())
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got[name] = shown
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the standby shows (-want +got):\n%s", diff)
	}
	inspector := inspect.New(o.standby, inspect.Options{})
	if v, err := inspector.Why(t.Context(), "orders", "claimed"); err != nil {
		t.Errorf("Why gave %+v, %v", v, err)
	}
	if statuses := kit.Checked(t, o.standby); statuses["writes"] != "warn" || statuses["answers"] != "ok" ||
		statuses["inbox"] != "ok" {
		t.Errorf("the checks of a standby are %v", statuses)
	}
	before := o.dump()
	var calling sync.WaitGroup
	for name, write := range writes {
		calling.Go(func() { // those of servers and producers are repeated for 5 s
			err := write(t.Context())
			if err == nil || !strings.Contains(err.Error(), "target_session_attrs=read-write") {
				t.Errorf("%s on a standby: %v; want an error that says how to find the primary", name, err)
			}
			if got := errors.Is(err, ports.ErrUnusable); got != operatorsCall(name) {
				t.Errorf("%s on a standby is ErrUnusable: %t; "+
					"want true only for an operator's call, which is not repeated",
					name, got)
			}
		})
	}
	calling.Wait()
	if diff := cmp.Diff(before, o.dump()); diff != "" {
		t.Errorf("the primary has changed (-before +after):\n%s", diff)
	}
}

// While the standby that a primary waits for does not answer, a push waits too. If an operator then
// ends the push's connection, its outcome is unknown, and it is not repeated: it is stored, once.
// If the operator cancels its wait, it is accepted, as docs/operations/postgres-dba.md states.
func TestPostgresAPushWaitsForTheStandby(t *testing.T) {
	tier.Long(t, "starts a standby")
	t.Parallel()
	pair := testservers.PostgresWithStandby(t)
	must(t, postgres.Migrate(t.Context(), pair.Primary, postgres.MigrateOptions{}))
	store := postgres.New(pair.Primary, postgres.Options{NoWakeups: true})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	pair.KillStandby()
	for end, wantErr := range map[string]bool{"pg_terminate_backend": true, "pg_cancel_backend": false} {
		pushed := make(chan error, 1)
		go func() { pushed <- pushOn(t.Context(), store, end) }()
		(&viewed{t: t}).eventually("a push waits for the standby", func() (ended bool) {
			must(t,
				pair.Primary.QueryRow(t.Context(), `SELECT count(`+end+
					`(pid)) > 0 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'`).Scan(
					&ended,
				))
			return ended
		})
		err := <-pushed
		if (err != nil) != wantErr || storekit.HasKnownOutcome(err) {
			t.Errorf("a push, after %s: %v; want an error of unknown outcome: %t", end, err, wantErr)
		}
	}
	var stored string
	must(t,
		pair.Primary.QueryRow(t.Context(),
			`SELECT string_agg(id || ' ' || has_more, ', ' ORDER BY id) FROM skein.jobs`).Scan(&stored))
	if want := "pg_cancel_backend false, pg_terminate_backend false"; stored != want {
		t.Errorf("stored are %s; want %s", stored, want)
	}
}
