package inspect

import (
	"fmt"
	"testing"

	"github.com/skeinq/skein/core"
)

func TestWhyAJobDoesNotRun(t *testing.T) {
	const now = core.Instant(1000)
	// due is a job that its shard's owner claims next.
	due := facts{
		Now:    now,
		Queued: true,
		State:  core.State{PerformAt: now, RetryCount: core.FreshRetryCount},
		Served: 2,
		Owned:  true,
	}
	with := func(change func(*facts)) facts {
		f := due
		change(&f)
		return f
	}
	claimed := with(func(f *facts) { f.Queued, f.Claimed, f.ShardClaims = false, true, 1 })

	tests := []struct {
		name  string
		facts facts
		want  Reason
	}{
		{"an id that is nowhere", facts{}, NothingQueued},
		{"an id that is nowhere, of a paused queue", facts{Paused: true}, NothingQueued},
		{"an id whose record can't be read", facts{Damaged: true, Paused: true}, Unreadable},
		{"an id whose job can't be read, with a dead letter", facts{Damaged: true, Dead: true}, Unreadable},
		{"a due job whose dead letter can't be read", with(func(f *facts) { f.Damaged = true }), IsNext},
		{"a dead letter", facts{Dead: true, Paused: true}, OnlyDead},
		{"an id with a schedule", facts{Scheduled: true, Paused: true}, Scheduled},
		{"a dead letter of an id with a schedule", facts{Scheduled: true, Dead: true}, OnlyDead},
		{"a due job", due, IsNext},
		{"a due job whose id is dead too", with(func(f *facts) { f.Dead = true }), IsNext},
		{"a job of a queue at its limit", with(func(f *facts) { f.LimitReached, f.Ahead = true, 3 }), AtLimit},
		{"a job of a queue whose rate allows no start", with(func(f *facts) {
			f.RateWaits, f.Ahead, f.Owner = true, 3, OwnerFacts{Lanes: 1, Busy: 1}
		}), AtRate},
		{"a job of a queue at its limit and at its rate", with(func(f *facts) {
			f.LimitReached, f.RateWaits = true, true
		}), AtLimit},
		{"a job of the future of a queue whose rate allows no start", with(func(f *facts) {
			f.RateWaits, f.State.PerformAt = true, now+1
		}), NotDueYet},
		{"a failed job that waits for a slot of its key", with(func(f *facts) {
			f.State.PerformAt, f.State.Slot, f.State.RetryCount = now+1, "acme", 2
		}), AtKeyRate},
		{"a job whose slot has come", with(func(f *facts) { f.State.Slot = "acme" }), IsNext},
		{"a job of a paused queue whose rate allows no start", with(func(f *facts) {
			f.RateWaits, f.Paused = true, true
		}), QueuePaused},
		{"a job that runs alone, first, while others run at the limit", with(func(f *facts) {
			f.LimitReached, f.ShardClaims, f.State.Recoveries = true, 1, core.AloneRecoveries
		}), RunsAlone},
		{
			"a job of the future of a queue at its limit",
			with(func(f *facts) { f.LimitReached, f.State.PerformAt = true, now+1 }),
			NotDueYet,
		},
		{"a job with others in front", with(func(f *facts) { f.Ahead = 3 }), BehindOthers},
		{
			"a job that runs alone, with others in front",
			with(func(f *facts) { f.Ahead, f.ShardClaims, f.State.Recoveries = 3, 1, core.AloneRecoveries }),
			BehindOthers,
		},
		{
			"a job that runs alone, first, while others run",
			with(func(f *facts) { f.ShardClaims, f.State.Recoveries = 1, core.AloneRecoveries }),
			RunsAlone,
		},
		{"a job that runs alone, first", with(func(f *facts) { f.State.Recoveries = core.AloneRecoveries }), IsNext},
		{"a job behind one that runs alone", with(func(f *facts) { f.Ahead, f.BehindAlone = 3, true }), WaitsForAlone},
		{"a job on its last chance, while another has it", with(func(f *facts) {
			f.BehindLastChance, f.LimitReached, f.Owner = true, true, OwnerFacts{Lanes: 1, Busy: 1}
		}), BehindLastChance},
		{
			"a job on its last chance, with others in front",
			with(func(f *facts) { f.BehindLastChance, f.Ahead = true, 3 }),
			BehindOthers,
		},
		{
			"a job on its last chance, behind one that runs alone",
			with(func(f *facts) { f.BehindLastChance, f.BehindAlone = true, true }),
			WaitsForAlone,
		},
		{"a job on its last chance that must run alone too", with(func(f *facts) {
			f.BehindLastChance, f.ShardClaims, f.State.Recoveries = true, 1, core.AloneRecoveries
		}), RunsAlone},
		{
			"a job on its last chance of a paused queue",
			with(func(f *facts) { f.BehindLastChance, f.Paused = true, true }),
			QueuePaused,
		},
		{
			"a job of a shard whose owner drains",
			with(func(f *facts) { f.Owner.Draining, f.Ahead, f.BehindAlone, f.LimitReached = true, 3, true, true }),
			OwnerDrains,
		},
		{
			"a job that only an owner serves that drains",
			with(func(f *facts) { f.Owner.Draining, f.Served = true, 0 }),
			NobodyServes,
		},
		{
			"a job of a queue that has no more lanes of its owner",
			with(func(f *facts) { f.Owner, f.Ahead = OwnerFacts{Lanes: 8, Busy: 8, MaxLanes: 2, QueueBusy: 2}, 3 }),
			LanesFull,
		},
		{
			"a job of a queue that has more lanes of its owner",
			with(func(f *facts) { f.Owner = OwnerFacts{Lanes: 8, Busy: 7, MaxLanes: 2, QueueBusy: 1} }),
			IsNext,
		},
		{
			"a job of a queue without a bound of lanes",
			with(func(f *facts) { f.Owner = OwnerFacts{Lanes: 8, QueueBusy: 7} }),
			IsNext,
		},
		{
			"a job of a queue at its limit, whose owner has no lane",
			with(func(f *facts) { f.LimitReached, f.Owner = true, OwnerFacts{Lanes: 1, Busy: 1} }),
			AtLimit,
		},
		{
			"a job of a shard that runs one batch after another",
			with(func(f *facts) { f.Owner, f.ShardClaims, f.Ahead = OwnerFacts{Lanes: 8, Busy: 8, Parallel: 1}, 1, 3 }),
			ShardFull,
		},
		{
			"a job of such a shard that runs nothing",
			with(func(f *facts) { f.Owner = OwnerFacts{Lanes: 8, Busy: 7, Parallel: 1} }),
			IsNext,
		},
		{
			"a job beside two batches of two",
			with(func(f *facts) { f.Owner, f.ShardClaims = OwnerFacts{Parallel: 2, BatchSize: 2}, 3 }),
			ShardFull,
		},
		{
			"a job beside one batch of two",
			with(func(f *facts) { f.Owner, f.ShardClaims = OwnerFacts{Parallel: 2, BatchSize: 2}, 2 }),
			IsNext,
		},
		{
			"a job whose owner has no free lane",
			with(func(f *facts) { f.Owner, f.Ahead = OwnerFacts{Lanes: 2, Busy: 2}, 3 }),
			LanesBusy,
		},
		{
			"a job whose owner is to have fewer lanes",
			with(func(f *facts) { f.Owner = OwnerFacts{Lanes: 2, Busy: 3} }),
			LanesBusy,
		},
		{
			"a job that is pinned to a busy lane, beside free ones",
			with(func(f *facts) { f.Owner, f.Ahead = OwnerFacts{Lanes: 2, Busy: 1, LaneBusy: true}, 3 }),
			LanesBusy,
		},
		{"a job whose owner has a free lane", with(func(f *facts) { f.Owner = OwnerFacts{Lanes: 2, Busy: 1} }), IsNext},
		{"a job of a shard that nobody has", with(func(f *facts) { f.Owned, f.Ahead = false, 3 }), ShardUnowned},
		{"a job that nobody serves", with(func(f *facts) { f.Owned, f.Served = false, 0 }), NobodyServes},
		{"a job that nobody serves, though a lease lasts", with(func(f *facts) { f.Served = 0 }), NobodyServes},
		{"a job of the future", with(func(f *facts) { f.State.PerformAt, f.Served = now+1, 0 }), NotDueYet},
		{"a job that failed", with(func(f *facts) { f.State.PerformAt, f.State.RetryCount = now+1, 0 }), BacksOff},
		{"a job that failed and is due", with(func(f *facts) { f.State.RetryCount = 0 }), IsNext},
		{
			"a held job of a paused queue",
			with(func(f *facts) { f.State.PerformAt, f.State.RetryCount, f.Paused = core.MaxInstant, 3, true }),
			Held,
		},
		{
			"a held job whose id is claimed",
			with(func(f *facts) { f.State.PerformAt, f.State.RetryCount, f.Claimed = core.MaxInstant, 3, true }),
			PredecessorRuns,
		},
		{"a job of a paused queue", with(func(f *facts) { f.State.PerformAt, f.Paused = now+1, true }), QueuePaused},
		{"a claimed job", claimed, InBuffer},
		{"a claimed job of a paused queue", func() facts { f := claimed; f.Paused = true; return f }(), InBuffer},
		{
			"a claimed job on its last chance, while another has it",
			func() facts { f := claimed; f.BehindLastChance = true; return f }(),
			BehindLastChance,
		},
		{
			"a running job on its last chance, while another had it",
			func() facts { f := claimed; f.BehindLastChance, f.Running = true, true; return f }(),
			RunsNow,
		},
		{
			"a job on its last chance that a dead node had",
			func() facts { f := claimed; f.BehindLastChance, f.LeaseOver = true, true; return f }(),
			OwnerGone,
		},
		{"a running job", func() facts { f := claimed; f.Running = true; return f }(), RunsNow},
		{
			"a job that a dead node had",
			func() facts { f := claimed; f.Running, f.LeaseOver = true, true; return f }(),
			OwnerGone,
		},
		{
			"a push for a running job",
			func() facts { f := claimed; f.Queued, f.Running = true, true; return f }(),
			PredecessorRuns,
		},
		{
			"a push for a job that a dead node had",
			func() facts { f := claimed; f.Queued, f.LeaseOver = true, true; return f }(),
			OwnerGone,
		},
	}

	seen := map[Reason]bool{}
	for _, tt := range tests {
		if got := reasonOf(&tt.facts); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
		seen[tt.want] = true
	}

	for r := NothingQueued; r <= IsNext; r++ {
		if !seen[r] {
			t.Errorf("no test asks for %v", r)
		}
	}
}

func TestReasonsHaveNames(t *testing.T) {
	seen := map[string]bool{}
	for r := NothingQueued; r <= IsNext; r++ {
		if name := r.String(); name == "" || seen[name] {
			t.Errorf("reason %d is called %q, as another one or not at all", r, name)
		} else {
			seen[name] = true
		}
	}
	for _, r := range []Reason{IsNext + 1, 99} {
		if got, want := r.String(), fmt.Sprintf("Reason(%d)", uint8(r)); got != want {
			t.Errorf("an unknown reason is called %q, want %q", got, want)
		}
	}
}
