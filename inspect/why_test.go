package inspect_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// serve announces a server of the queue for an hour.
func (s *fixture) serve(name string, draining bool) {
	s.t.Helper()
	s.serveAs(ports.Node{Owner: "owner of " + name, Name: name, Draining: draining})
}

// serveAs announces a server of the queue.
func (s *fixture) serveAs(n ports.Node) {
	s.t.Helper()
	if n.Lanes = 1; n.Queues == nil {
		n.Queues = []string{"orders"}
	}
	if _, err := s.store.Announce(s.t.Context(), ports.AnnounceRequest{Node: n, TTL: time.Hour}); err != nil {
		s.t.Fatal(err)
	}
}

// damage makes the store report that it can't read its record of an id.
func (s *fixture) damage(id string, places ...ports.Place) {
	s.Inspector = inspect.New(storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		err := next(ctx)
		if found, ok := call.Reply.(*ports.Found); ok && call.Request.(*ports.FindRequest).ID == id {
			found.Damaged = places
		}
		return err
	}), inspect.Options{})
}

func TestWhySaysWhatHoldsAJob(t *testing.T) {
	tests := []struct {
		name   string
		arrive func(*fixture)
		want   inspect.Reason
		says   string
		until  time.Duration // since the epoch
	}{
		{"nothing", func(*fixture) {}, inspect.NothingQueued, "nothing is queued", 0},
		{
			"a schedule",
			func(s *fixture) { s.hourly("x", "nightly"); s.serve("blue", false) },
			inspect.Scheduled,
			"its schedule nightly pushes at 2030-01-02T03:30:00Z, in 26m0s",
			26 * time.Minute,
		},
		{
			"a schedule of another id",
			func(s *fixture) { s.hourly(sameShard("x", 1)[0], "nightly") },
			inspect.NothingQueued,
			"nothing is queued",
			0,
		},
		{"two schedules", func(s *fixture) {
			s.hourly("x", "a-later")
			s.schedule("orders", "x", "b-sooner", "cron 15 * * * * UTC")
			s.schedule("orders", "x", "c-paused", "cron 5 * * * * UTC", func(d *core.Declaration) { d.Paused = true })
		}, inspect.Scheduled, "its schedule b-sooner pushes at 2030-01-02T03:15:00Z", 11 * time.Minute},
		{"a paused schedule", func(s *fixture) {
			s.schedule("orders", "x", "a-never", "cron 0 0 30 2 * UTC", func(d *core.Declaration) { d.Paused = true })
			s.hourly("x", "nightly", func(d *core.Declaration) { d.Paused = true })
		}, inspect.Scheduled, "its schedule nightly is paused by code since 2030-01-02T03:04:00Z; resume it", 0},
		{"a schedule that an operator has paused", func(s *fixture) {
			s.hourly("x", "nightly")
			s.advance(time.Second)
			_, _ = s.PauseSchedules(inspect.WithActor(s.t.Context(), inspect.Actor{Name: "ann"}),
				"orders", ofID("x"), "a note")
		}, inspect.Scheduled, "its schedule nightly is paused by ann since 2030-01-02T03:04:01Z; resume it", 0},
		{
			"a schedule beside a dead letter",
			func(s *fixture) { s.dead("x"); s.hourly("x", "nightly") },
			inspect.OnlyDead,
			"revive its dead letter to run it again; its schedule nightly pushes at 2030-01-02T03:30:00Z, in 26m0s",
			26 * time.Minute,
		},
		{
			"a schedule without a tick",
			func(s *fixture) { s.schedule("orders", "x", "never", "cron 0 0 30 2 * UTC") },
			inspect.Scheduled,
			"its schedule never has no next tick",
			0,
		},
		{
			"a schedule of a paused queue",
			func(s *fixture) { s.hourly("x", "nightly"); _ = s.Pause(s.t.Context(), "orders") },
			inspect.Scheduled,
			"the queue is paused, and its schedule nightly does not push until it is resumed; " +
				"its next tick is at 2030-01-02T03:30:00Z",
			0,
		},
		{
			"a late schedule that nobody serves",
			func(s *fixture) { s.hourly("x", "nightly"); s.advance(time.Hour) },
			inspect.Scheduled,
			"the tick of its schedule nightly is late, due for 34m0s; no server serves the queue",
			0,
		},
		{
			"a late schedule of a shard without an owner",
			func(s *fixture) { s.hourly("x", "nightly"); s.advance(time.Hour); s.serve("blue", false) },
			inspect.Scheduled,
			"due for 34m0s; no server has shard orders/0; one of 1 servers",
			0,
		},
		{"a late schedule of a shard with an owner", func(s *fixture) {
			s.hourly("x", "nightly")
			s.advance(time.Hour)
			s.serve("blue", false)
			s.claim()
		}, inspect.Scheduled, "the server that has the shard pushes it within a poll interval", 0},
		{"a schedule whose spec can't be read", func(s *fixture) {
			stored := s.hourly("x", "nightly")
			s.advance(time.Hour)
			broken := stored.Break("no such zone", core.InstantOf(s.clock.Now()))
			s.change("orders", ports.ScheduleChange{
				ScheduleKey: stored.ScheduleKey,
				Revision:    stored.Revision,
				Schedule:    &broken,
			})
		}, inspect.Scheduled, "a server can't read the spec of its schedule nightly", 0},
		{
			"a schedule of a job",
			func(s *fixture) { s.hourly("x", "nightly"); s.push("x", time.Hour, "p") },
			inspect.NotDueYet,
			"not due yet, runs in 1h0m0s",
			time.Hour,
		},
		{
			"a record that can't be read",
			func(s *fixture) { s.damage("x", ports.PlaceQueued, ports.PlaceDead) },
			inspect.Unreadable,
			"can't be read (queued, dead)",
			0,
		},
		{"a dead letter", func(s *fixture) { s.dead("x") }, inspect.OnlyDead, "revive it", 0},
		{
			"a taken job",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.advance(time.Second) },
			inspect.InBuffer,
			"server blue for 1s",
			0,
		},
		{
			"a push for a taken job",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.pushAll("x") },
			inspect.PredecessorRuns,
			"server blue",
			0,
		},
		{
			"a job whose server died",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.advance(2 * time.Hour) },
			inspect.OwnerGone,
			"the lease of server blue expired 1h0m0s ago; it claimed the job at 2030-01-02T03:04:00Z",
			0,
		},
		{
			"a paused queue",
			func(s *fixture) { s.pushAll("x"); _ = s.Pause(s.t.Context(), "orders") },
			inspect.QueuePaused,
			"resume",
			0,
		},
		{
			"a job that has failed",
			func(s *fixture) { s.failed("x"); s.advance(time.Minute) },
			inspect.BacksOff,
			"runs again in 59m0s, after failure 1",
			time.Hour,
		},
		{
			"a held job of a paused queue",
			func(s *fixture) { s.held("x"); _ = s.Pause(s.t.Context(), "orders") },
			inspect.Held,
			"held, since its retries or its recoveries are used up",
			0,
		},
		{
			"a job of tomorrow",
			func(s *fixture) { s.push("x", 24*time.Hour, "p") },
			inspect.NotDueYet,
			"not due yet, runs in 24h0m0s; it was pushed for later, its handler returned Snooze or Await, or the rate",
			24 * time.Hour,
		},
		{"nobody there", func(s *fixture) { s.pushAll("x") }, inspect.NobodyServes, "no server serves the queue", 0},
		{
			"only servers that drain",
			func(s *fixture) { s.pushAll("x"); s.serve("blue", true) },
			inspect.NobodyServes,
			"no server serves the queue, and these are draining: blue",
			0,
		},
		{
			"servers that are gone",
			func(s *fixture) {
				s.pushAll("x")
				s.serve("red", false)
				s.advance(time.Second)
				s.serve("blue", false)
				s.serveAs(ports.Node{Owner: "mails", Name: "green", Queues: []string{"mail"}})
				s.advance(90 * time.Minute)
			},
			inspect.NobodyServes,
			"no server serves the queue; the last was server blue, until " +
				epoch.Add(time.Hour+time.Second).Format(time.RFC3339) + ", 30m0s ago",
			0,
		},
		{
			"a shard without an owner",
			func(s *fixture) { s.pushAll("x"); s.serve("blue", false) },
			inspect.ShardUnowned,
			"no server has shard orders/0; one of 1 servers",
			0,
		},
		{"a shard whose owner is gone", func(s *fixture) {
			s.claim()
			s.serveAs(ports.Node{Owner: "owner", Name: "red"})
			s.advance(90 * time.Minute)
			s.pushAll("x")
			s.serve("blue", false)
		}, inspect.ShardUnowned, "since the lease of red ended 30m0s ago; one of 1 servers", 0},
		{"a shard whose owner has left no name", func(s *fixture) {
			s.claim()
			s.advance(2 * time.Hour)
			s.pushAll("x")
			s.serve("blue", false)
		}, inspect.ShardUnowned, "since the lease of owner ended 1h0m0s ago", 0},
		{
			"a job that runs",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.runs(0) },
			inspect.RunsNow,
			"the job runs on server blue for 2s; " +
				"if its handler hangs, cancel and drop the job before its process is killed, or it runs again",
			0,
		},
		{
			"a job that runs and is to be dropped",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.cancel(inspect.CancelModeDrop); s.runs(0) },
			inspect.RunsNow,
			"the job is cancelled, and is dropped once its handler returns or its process ends",
			0,
		},
		{
			"a job that runs and is to be put back",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.cancel(inspect.CancelModePutBack); s.runs(0) },
			inspect.RunsNow,
			"the job is cancelled, and runs again once its handler returns or its process ends, unless you drop it",
			0,
		},
		{
			"a push for a job that runs",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.runs(0); s.pushAll("x") },
			inspect.PredecessorRuns,
			"an earlier job of this id runs on server blue for 2s; the queued payloads run after it; " +
				"if its handler hangs, cancel and drop the earlier job",
			0,
		},
		{
			"a job that another claim of it ran",
			func(s *fixture) { s.pushAll("x"); s.claim(); s.runs(1) },
			inspect.InBuffer,
			"claimed by server blue",
			0,
		},
		{"a job that has failed, of a queue that says how often it may", func(s *fixture) {
			s.failed("x")
			s.serveAs(ports.Node{Owner: "1", Status: ports.NodeStatus{Queues: []ports.QueueStatus{
				{Queue: "mail", MaxRetries: 99},
				{Queue: "orders", MaxRetries: 25},
			}}})
		}, inspect.BacksOff, "runs again in 1h0m0s, after failure 1 of 25", time.Hour},
		{
			"the limit of an operator reached",
			func(s *fixture) {
				s.busy(2, 1)
				s.serveAs(ports.Node{Owner: "1", Name: "node 1", Status: ports.NodeStatus{Queues: []ports.QueueStatus{{
					Queue: "orders", MaxRunning: 2, Busy: 1, SettingsVersion: 1,
					Code: map[string]string{"max-running": "50"},
				}}}})
				s.serveAs(ports.Node{Owner: "0", Name: "node 0", Status: ports.NodeStatus{Queues: []ports.QueueStatus{{
					Queue: "orders", MaxRunning: 2, Busy: 1, SettingsVersion: 1,
				}}}})
				s.claim()
				s.pushAll("x")
			},
			inspect.AtLimit,
			"the queue is at its limit: 2 of 2 running (MaxRunning, set by an operator); running now: node 0 1, node 1 1",
			0,
		},
		{
			"the limit reached",
			func(s *fixture) { s.busy(2, 1); s.claim(); s.pushAll("x") },
			inspect.AtLimit,
			"the queue is at its limit: 2 of 2 running (MaxRunning); running now: node 0 1, node 1 1",
			0,
		},
		{
			"a limit that is not reached",
			func(s *fixture) { s.busy(3, 1); s.claim(); s.pushAll("x") },
			inspect.IsNext,
			"the job is next",
			0,
		},
		{
			"a rate that allows no start yet",
			func(s *fixture) { s.rate("6/1m0s"); s.starts(1); s.pushAll("x") },
			inspect.AtRate,
			"the job waits for the rate of the queue: 6/1m0s on all servers, the next start in 10s",
			10 * time.Second,
		},
		{
			"a rate that allows no start yet, with jobs in front",
			func(s *fixture) {
				s.rate("6/1m0s")
				s.starts(1)
				s.pushAll(sameShard("x", 1)[0])
				s.advance(time.Second)
				s.pushAll("x")
			},
			inspect.AtRate,
			"the next start in 9s; due jobs of its shard in front: 1",
			10 * time.Second,
		},
		{
			"a rate that allows a start",
			func(s *fixture) { s.rate("6/1m0s+1"); s.starts(1); s.pushAll("x") },
			inspect.IsNext,
			"the job is next",
			0,
		},
		{
			"a rate that is stopped",
			func(s *fixture) {
				s.rate("6/1m0s")
				if err := s.StopRate(s.t.Context(), "orders", "", time.Hour); err != nil {
					s.t.Fatal(err)
				}
				s.advance(time.Minute)
				s.pushAll("x")
			},
			inspect.AtRate,
			"for 59m0s more; a handler has returned SlowDown, or an operator has stopped the rate",
			time.Hour,
		},
		{
			"a slot of the rate of its key",
			func(s *fixture) { s.pushAll("x"); s.putOff(s.claim(), 5*time.Minute, "acme") },
			inspect.AtKeyRate,
			`the job waits for the rate of its key "acme": its start is in 5m0s; no push changes that`,
			5 * time.Minute,
		},
		{
			"a slot that has come",
			func(s *fixture) {
				s.pushAll("x")
				s.putOff(s.claim(), time.Minute, "acme")
				s.advance(time.Minute)
			},
			inspect.NobodyServes,
			"no server serves",
			0,
		},
		{
			"no slot of the rate of its key",
			func(s *fixture) { s.pushAll("x"); s.putOff(s.claim(), time.Hour, "") },
			inspect.NotDueYet,
			"runs in 1h0m0s; it was pushed for later, its handler returned Snooze or Await, or the rate of its key has no slot",
			time.Hour,
		},
		{
			"a rate that no server has any more",
			func(s *fixture) { s.rate(""); s.starts(1); s.pushAll("x") },
			inspect.IsNext,
			"the job is next",
			0,
		},
		{
			"a rate that the owner of the shard does not have",
			func(s *fixture) { s.rate("none"); s.starts(1); s.pushAll("x") },
			inspect.IsNext,
			"the job is next",
			0,
		},
		{
			"an owner that drains",
			func(s *fixture) { s.owns(true, 1, ports.QueueStatus{}); s.pushAll("x") },
			inspect.OwnerDrains,
			"server red, which has the shard, is draining",
			0,
		},
		{
			"an owner without a free lane",
			func(s *fixture) { s.owns(false, 1, ports.QueueStatus{}); s.pushAll("x") },
			inspect.LanesBusy,
			"waits for a free lane: on server red, which has the shard, 1 of 1 lanes run batches",
			0,
		},
		{
			"an owner with a free lane",
			func(s *fixture) { s.owns(false, 0, ports.QueueStatus{}); s.pushAll("x") },
			inspect.IsNext,
			"the job is next",
			0,
		},
		{
			"an owner with a free lane, and none for the shard",
			func(s *fixture) {
				s.owns(false, 0, ports.QueueStatus{LaneBusy: []int{0, 1, 2}})
				s.pushAll("x")
			},
			inspect.LanesBusy,
			"the job waits for its lane: server red works its shard with one lane, which runs a batch",
			0,
		},
		{"an owner with lanes that are busy for other shards", func(s *fixture) {
			s.owns(false, 0, ports.QueueStatus{LaneBusy: []int{core.ShardOf("x", fixtureShards) + 1}})
			s.pushAll("x")
		}, inspect.IsNext, "the job is next", 0},
		{"no free lane and others in front", func(s *fixture) {
			s.owns(false, 1, ports.QueueStatus{})
			s.push("x", 0, "p")
			s.push(sameShard("x", 1)[0], -time.Second, "p")
		}, inspect.LanesBusy, "run batches; due jobs of its shard in front: 1", 0},
		{"as many lanes as the queue may have", func(s *fixture) {
			s.owns(false, 0, ports.QueueStatus{MaxLanes: 2, Busy: 2})
			s.pushAll("x")
		}, inspect.LanesFull, "runs 2 batches of the queue, and no more than 2 may run there (MaxLanes)", 0},
		{
			"one batch of the shard after another",
			func(s *fixture) {
				s.pushAll(sameShard("x", 1)...)
				s.owns(false, 0, ports.QueueStatus{Parallel: 1, BatchSize: 1})
				s.pushAll("x")
			},
			inspect.ShardFull,
			"server red has claimed 1 jobs of the shard, and runs no more than 1 of its batches at once (Parallel)",
			0,
		},
		{"a server without a free lane that does not have the shard", func(s *fixture) {
			s.owns(false, 0, ports.QueueStatus{})
			s.serveAs(ports.Node{Owner: "other", Name: "blue", Status: ports.NodeStatus{Busy: 1}})
			s.pushAll("x")
		}, inspect.IsNext, "the job is next", 0},
		{
			"a job behind one that runs alone",
			func(s *fixture) {
				alone := sameShard("x", 1)[0]
				s.recovered(alone, core.AloneRecoveries)
				s.claim()
				s.serve("blue", false)
				s.pushAll("x")
			},
			inspect.WaitsForAlone,
			"runs alone, because it was recovered repeatedly; " +
				"if its handler hangs, cancel and drop that job before its process is killed",
			0,
		},
		{
			"a job on its last chance, which another job of the queue has",
			func(s *fixture) {
				s.recovered("x", 3)
				s.hasLastChance(3, ports.LastChance{Shard: core.Shard{Queue: "orders", Index: 2}, ID: "y"})
			},
			inspect.BehindLastChance,
			`the job is on its last chance and runs after job "y" of orders/2; ` +
				`one more crash of its process uses up its recoveries, and server red runs one such job at a time`,
			0,
		},
		{"a job on its last chance, which a job of another queue has", func(s *fixture) {
			s.recovered("x", 3)
			s.hasLastChance(3, ports.LastChance{Shard: core.Shard{Queue: "mail"}, ID: "y"})
		}, inspect.BehindLastChance, `the job is on its last chance and runs after job "y" of mail/0`, 0},
		{"a claimed job on its last chance, which another job has", func(s *fixture) {
			s.recovered("x", 3)
			s.claim()
			s.hasLastChance(3, ports.LastChance{Shard: core.Shard{Queue: "orders", Index: 2}, ID: "y"})
		}, inspect.BehindLastChance, `the job is on its last chance and runs after job "y" of orders/2`, 0},
		{"a claimed job that has the last chance", func(s *fixture) {
			s.recovered("x", 3)
			s.claim()
			s.hasLastChance(3, ports.LastChance{
				Shard: core.Shard{Queue: "orders", Index: core.ShardOf("x", fixtureShards)},
				ID:    "x",
			})
		}, inspect.InBuffer, "its handler runs, or is about to run", 0},
		{"a claimed job that is not on its last chance", func(s *fixture) {
			s.recovered("x", 2)
			s.claim()
			s.hasLastChance(3, ports.LastChance{Shard: core.Shard{Queue: "orders", Index: 2}, ID: "y"})
		}, inspect.InBuffer, "its handler runs, or is about to run", 0},
		{
			"a job on its last chance on a server that runs no other",
			func(s *fixture) { s.recovered("x", 3); s.hasLastChance(3, ports.LastChance{}) },
			inspect.IsNext,
			"the job is next",
			0,
		},
		{"a recovered job on a server that announces no bound", func(s *fixture) {
			s.recovered("x", 3)
			s.hasLastChance(0, ports.LastChance{Shard: core.Shard{Queue: "orders", Index: 2}, ID: "y"})
		}, inspect.IsNext, "the job is next", 0},
		{"others in front", func(s *fixture) {
			s.serve("blue", false)
			s.claim() // takes the leases
			s.push("x", 0, "p")
			for _, id := range sameShard("x", 3) {
				s.push(id, -time.Second, "p")
			}
		}, inspect.BehindOthers, "in front: 3", 0},
		{
			"nothing in front",
			func(s *fixture) { s.serve("blue", false); s.claim(); s.pushAll("x") },
			inspect.IsNext,
			"the job is next",
			0,
		},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newFixture(t)
			tt.arrive(s)
			v, err := s.Why(t.Context(), "orders", "x")
			if err != nil {
				t.Fatal(err)
			}
			if v.Reason != tt.want || !strings.Contains(v.Text, tt.says) {
				t.Errorf("Why says %v, %q; want %v, %q", v.Reason, v.Text, tt.want, tt.says)
			}

			var until time.Duration
			if !v.Until.IsZero() {
				until = v.Until.Sub(epoch)
			}
			if until != tt.until {
				t.Errorf("until %v, want %v", until, tt.until)
			}

			found, err := s.FindSome(t.Context(), "orders", "x", 0)
			if diff := cmp.Diff(found, v.Found, cmp.AllowUnexported(inspect.Cursor{})); err != nil || diff != "" {
				t.Errorf("what it found (%v, -Find +Why):\n%s", err, diff)
			}
		})
	}
}

// A server that announces itself after its lease has ended does not own the shard any more.
func TestWhySaysNothingOfAnOwnerWhoseLeaseHasEnded(t *testing.T) {
	s := newFixture(t)
	s.claim()
	s.advance(2 * time.Hour)
	s.pushAll("x")
	s.serveAs(ports.Node{
		Owner:  "owner",
		Name:   "red",
		Queues: []string{"orders"},
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{{
			Queue:     "orders",
			MaxLanes:  7,
			Busy:      1,
			Parallel:  3,
			BatchSize: 2,
			LaneBusy:  []int{core.ShardOf("x", fixtureShards)},
		}}},
	})

	v, err := s.Why(t.Context(), "orders", "x")
	if err != nil || v.Owner != "" || v.OwnerFacts != (inspect.OwnerFacts{}) {
		t.Errorf("owner %q, %+v, %v; want no owner and no facts", v.Owner, v.OwnerFacts, err)
	}
	if v.Reason != inspect.ShardUnowned || v.Busy != 1 {
		t.Errorf("Why says %v, and that %d batches run; want %v and 1", v.Reason, v.Busy, inspect.ShardUnowned)
	}
}

// runs has the owner of the shards announce that the handler of x began now, under a claim of that
// many turns later, and lets two seconds pass.
func (s *fixture) runs(later int64) {
	s.t.Helper()
	found, err := s.store.Find(s.t.Context(), ports.FindRequest{Queue: "orders", ID: "x", Payloads: 1000})
	if err != nil || found.Claim == nil {
		s.t.Fatalf("x is not claimed: %v", err)
	}
	c := found.Claim
	c.Receipt.Number += later
	s.serveAs(ports.Node{Owner: c.Owner, Name: c.Node, Status: ports.NodeStatus{
		Longest: []ports.RunningJob{
			{Shard: c.Shard, ID: "y", Receipt: c.Receipt},
			{Shard: c.Shard, ID: "x", Receipt: c.Receipt, Began: found.Standing.Now},
		},
	}})
	s.advance(2 * time.Second)
}

// A handler runs although payloads of its job were settled by themselves, which changes the receipt
// of the claim.
func TestWhyFindsTheHandlerOfAJobWithSettledPayloads(t *testing.T) {
	s := newFixture(t)
	s.push("x", 0, "p", "q")
	c := s.claim()[0]
	s.runs(0)
	shard := core.Shard{Queue: "orders", Index: core.ShardOf("x", fixtureShards)}
	if err := s.store.SettlePayload(t.Context(), shard, c.SettlePayload(0)); err != nil {
		t.Fatal(err)
	}
	v, err := s.Why(t.Context(), "orders", "x")
	if err != nil || v.Reason != inspect.RunsNow || v.RunningSince.IsZero() {
		t.Errorf("Why: %v since %v, %v; want %v", v.Reason, v.RunningSince, err, inspect.RunsNow)
	}
}

// cancel cancels x.
func (s *fixture) cancel(mode inspect.CancelMode) {
	s.t.Helper()
	if r, err := s.Cancel(s.t.Context(), "orders", []string{"x"}, mode); err != nil || r.Handled != 1 {
		s.t.Fatalf("%+v, %v", r, err)
	}
}

// owns has a server take all shards and their due jobs, and announce that the given number of its
// lanes are busy; it has one lane. Another server serves the queue too.
func (s *fixture) owns(draining bool, busy int, of ports.QueueStatus) {
	s.t.Helper()
	s.serve("blue", false)
	s.claim()
	of.Queue = "orders"
	s.serveAs(ports.Node{
		Owner:    "owner",
		Name:     "red",
		Draining: draining,
		Status:   ports.NodeStatus{Busy: busy, Queues: []ports.QueueStatus{of}},
	})
}

// recovered queues a job that was recovered so often.
func (s *fixture) recovered(id string, recoveries int) {
	s.t.Helper()
	s.pushAll(id)
	c := s.claim()[0]
	s.turn(core.Shard{Queue: "orders", Index: core.ShardOf(id, fixtureShards)}, 0, core.Settlement{
		ID: c.ID, Receipt: c.Receipt, Rest: core.Requeue,
		PutBack: core.PutBack{SameTime: true, RetryCount: c.RetryCount, Recoveries: recoveries},
	})
}

// hasLastChance has the server with all leases announce the job on its last chance that it runs,
// and how often a job of the queue may be recovered.
func (s *fixture) hasLastChance(most int, of ports.LastChance) {
	s.t.Helper()
	s.serve("blue", false)
	s.serveAs(ports.Node{Owner: "owner", Name: "red", Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", MaxRecoveries: most}}, LastChance: of,
	}})
}

// busy announces two servers that run the given numbers of batches of a queue with a limit that
// one of them does not know yet.
func (s *fixture) busy(limit, each int) {
	for i, known := range []int{limit, limit - 1} {
		s.serveAs(ports.Node{Owner: strconv.Itoa(i), Name: "node " + strconv.Itoa(i), Status: ports.NodeStatus{
			Queues: []ports.QueueStatus{
				{Queue: "orders", MaxRunning: known, Busy: each},
				{Queue: "mail", MaxRunning: 9, Busy: 9},
			},
		}})
	}
}

// putOff puts claimed jobs back until a slot of a key.
func (s *fixture) putOff(claims []core.Claim, d time.Duration, key string) {
	s.t.Helper()
	for i := range claims {
		shard := core.Shard{Queue: "orders", Index: core.ShardOf(claims[i].ID, fixtureShards)}
		s.turn(shard, 0, claims[i].PutOff(d, key))
	}
}

// rate has the server with all leases announce a rate, beside one with a slower rate.
func (s *fixture) rate(rate string) {
	s.t.Helper()
	s.owns(false, 0, ports.QueueStatus{Rate: rate})
	if rate == "" {
		return
	}
	s.serveAs(ports.Node{Owner: "slow", Name: "slow", Status: ports.NodeStatus{
		Queues: []ports.QueueStatus{{Queue: "orders", Rate: "1/1h0m0s"}},
	}})
}

// starts takes slots of six starts a minute.
func (s *fixture) starts(n int) {
	s.t.Helper()
	s.take(ports.Take{Rate: core.Rate{Count: 6, Per: time.Minute, Burst: n - 1}, Want: n})
}

// take takes grants of a limiter of the queue orders.
func (s *fixture) take(t ports.Take) {
	s.t.Helper()
	_, err := s.store.Take(s.t.Context(), ports.TakeRequest{Queue: "orders", Takes: []ports.Take{t}})
	if err != nil {
		s.t.Fatal(err)
	}
}

// sameShard returns n ids of the same shard as one of them.
func sameShard(id string, n int) (ids []string) {
	for i := 0; len(ids) < n; i++ {
		other := "other-" + strings.Repeat("x", i)
		if core.ShardOf(other, fixtureShards) == core.ShardOf(id, fixtureShards) {
			ids = append(ids, other)
		}
	}
	return ids
}

func TestWhyRefusesWhatFindRefuses(t *testing.T) {
	s := newFixture(t)
	for _, id := range []string{"", "a\x00", "\xff", strings.Repeat("i", core.MaxIDBytes+1)} {
		if _, err := s.Why(t.Context(), "orders", id); !errors.Is(err, inspect.ErrInvalidID) {
			t.Errorf("Why of id %.9q: %v", id, err)
		}
	}
	for _, queue := range []string{"", "nothing", ".", "orders/1"} {
		if _, err := s.Why(t.Context(), queue, "x"); !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Errorf("Why of queue %q: %v", queue, err)
		}
	}
}

// A queue that was forgotten and declared anew with another shard count has its ids in other
// shards, and nothing of the old ones.
func TestWhyAfterAnotherLayout(t *testing.T) {
	s := newFixture(t)
	s.pushAll("x")
	s.advance(time.Hour)
	if _, err := s.Delete(t.Context(), "orders", inspect.JobIDs("x")); err != nil {
		t.Fatal(err)
	}
	if err := s.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Why(t.Context(), "orders", "x"); !errors.Is(err, inspect.ErrUnknownQueue) {
		t.Errorf("Why of a forgotten queue: %v", err)
	}

	s.declare("orders", 64)
	s.serve("blue", false)
	v, err := s.Why(t.Context(), "orders", "x")
	if want := core.ShardOf("x", 64); err != nil || v.Reason != inspect.NothingQueued || v.Found.Shard.Index != want {
		t.Errorf("%v of %v, %v; want nothing of shard %d", v.Reason, v.Found.Shard, err, want)
	}
}

// noNodes is a store whose list of servers can't be reached.
type noNodes struct{ inspect.Store }

func (noNodes) Nodes(ctx context.Context) (ports.NodesReply, error) {
	<-ctx.Done()
	return ports.NodesReply{}, ctx.Err()
}

// Without the list of servers a verdict follows from the shard's state, and does not assume that
// no server serves the queue.
func TestWhyWithoutTheListOfServers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newFixture(t)
		s.push("a", time.Hour, "p")
		i := inspect.New(noNodes{s.store}, inspect.Options{})
		v, err := i.Why(t.Context(), "orders", "a")
		if err != nil || !v.ServersUnknown || v.Reason != inspect.NotDueYet {
			t.Errorf("%+v, %v; want that it is not due", v, err)
		}

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := i.Why(ctx, "orders", "a"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's context ends Why with %v", err)
		}
	})
}
