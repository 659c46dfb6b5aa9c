package inspect_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// deadAndFailed checks how many dead letters there are, and how many failures there were.
func (s *fixture) deadAndFailed(when string, dead, failed int64) {
	s.t.Helper()
	c := s.counts()
	if diff := cmp.Diff([2]int64{dead, failed}, [2]int64{c.Dead, c.Failed}); diff != "" {
		s.t.Errorf("dead letters and failures %s (-want +got):\n%s", when, diff)
	}
}

// lastChance lets the due jobs fail, or be recovered, without a retry left.
func (s *fixture) lastChance(settle func(core.RetryPolicy, *core.Claim) core.Settlement) {
	s.t.Helper()
	for _, c := range s.claim() {
		shard := core.Shard{Queue: "orders", Index: core.ShardOf(c.ID, fixtureShards)}
		s.turn(shard, 0, settle(core.RetryPolicy{}, &c))
	}
}

// Stats count the dead letters that there are, and every failure that there was. So a dead letter
// that is revived or purged takes nothing from the failures.
func TestAFailureStaysCountedWithoutItsDeadLetter(t *testing.T) {
	s := newFixture(t)
	s.deadAndFailed("at first", 0, 0)
	s.dead("a")
	s.deadAndFailed("after a burial", 1, 1)

	if _, err := s.Revive(t.Context(), "orders", inspect.DeadIDs("a")); err != nil {
		t.Fatal(err)
	}
	s.deadAndFailed("after the revive", 0, 1)

	s.lastChance(func(p core.RetryPolicy, c *core.Claim) core.Settlement {
		return p.Settlement(c, &core.Outcome{Kind: core.Failed, Error: "boom"}, 0)
	})
	s.deadAndFailed("after the last retry has failed", 1, 2)

	if _, err := s.Purge(t.Context(), "orders", inspect.DeadIDs("a")); err != nil {
		t.Fatal(err)
	}
	s.deadAndFailed("after the purge", 0, 2)
	s.holds()
}

// A job that is buried because its server was lost too often counts as one failure, and is in a
// group of its own.
func TestABurialByRecoveryCountsAsAFailure(t *testing.T) {
	s := newFixture(t)
	s.pushAll("a")
	s.lastChance(recovered)
	s.deadAndFailed("after the last recovery", 1, 1)
	groups, err := s.Groups(t.Context(), "orders", 0)
	if err != nil || len(groups.Groups) != 1 || groups.Groups[0].Name != core.RecoveredGroup {
		t.Errorf("Groups = %+v, %v; want %q alone", groups, err, core.RecoveredGroup)
	}
}

// A job that has lost its last server is dead, and nothing else of it is left. It can be pushed and
// revived, and its dead letter can be purged.
func TestAJobThatLostItsLastServerIsPushedAndPurged(t *testing.T) {
	s := newFixture(t)
	found := func(when string, queued, dead bool) {
		t.Helper()
		f, err := s.Find(t.Context(), "orders", "a")
		if err != nil || (f.Queued != nil) != queued || f.Claimed != nil || (f.DeadLetter != nil) != dead {
			t.Errorf("%s: %+v, %v; want queued %v, dead %v and not claimed", when, f, err, queued, dead)
		}
	}

	s.pushAll("a")
	s.lastChance(recovered)
	found("after the last recovery", false, true)

	s.pushAll("a")
	found("after a push", true, true)
	s.lastChance(recovered)

	if r, err := s.Revive(t.Context(), "orders", inspect.DeadIDs("a")); err != nil || r.Handled != 1 {
		t.Errorf("revived %d, %v", r.Handled, err)
	}
	found("after a revive", true, false)

	s.lastChance(recovered)
	if r, err := s.Purge(t.Context(), "orders", inspect.DeadIDs("a")); err != nil || r.Handled != 1 {
		t.Errorf("purged %d, %v", r.Handled, err)
	}
	found("after a purge", false, false)
}

// recovered is the settlement of a claim whose owner is gone.
func recovered(p core.RetryPolicy, c *core.Claim) core.Settlement { return p.Recover(c, 0) }
