package inspect_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// settledAt checks what Settled returns for an id and a time.
func (s *fixture) settledAt(what, id string, since time.Time, settled, dead bool) {
	s.t.Helper()
	gotSettled, gotDead, err := s.Settled(s.t.Context(), "orders", id, since)
	if err != nil || gotSettled != settled || gotDead != dead {
		s.t.Errorf("%s: settled %v, dead %v, error %v; want %v and %v", what, gotSettled, gotDead, err, settled, dead)
	}
}

func TestSettled(t *testing.T) {
	s := newFixture(t)
	all := time.Time{}
	s.settledAt("never pushed", "a", all, true, false)

	before := s.clock.Now().Add(-time.Microsecond)
	s.push("a", 0, "p")
	pushed := s.clock.Now()
	s.settledAt("queued", "a", all, false, false)
	s.settledAt("queued, pushed at that instant", "a", pushed, false, false)
	s.settledAt("queued, pushed later", "a", before, true, false)

	s.advance(time.Second)
	claims := s.claim()
	s.settledAt("claimed", "a", pushed, false, false)
	s.settledAt("claimed, pushed later", "a", before, true, false)

	s.advance(time.Second)
	s.push("a", 0, "q")
	s.settle(claims, core.Outcome{Kind: core.Done})
	s.settledAt("done, and pushed again since", "a", pushed, true, false)
	s.settledAt("pushed again", "a", all, false, false)

	s.settle(s.claim(), core.Outcome{Kind: core.Failed, Error: "boom", OwnDelay: true, Delay: time.Hour})
	s.settledAt("in backoff", "a", all, false, false)

	s.push("b", 0, "p")
	s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: "no use"})
	s.settledAt("dead", "b", all, true, true)
	s.push("b", 0, "q")
	s.settledAt("dead, and pushed again", "b", all, false, true)
}

// A revive counts as a push at its time. So after dead only the zero time finds that the job waits
// again: until the push of another id, which came before the revive, nothing of it waits.
func TestSettledAfterARevive(t *testing.T) {
	s := newFixture(t)
	s.push("a", 0, "p")
	s.advance(time.Second)
	s.push("b", time.Hour, "p")
	since := s.clock.Now()
	s.advance(time.Second)
	s.settle(s.claim(), core.Outcome{Kind: core.Buried, Error: "no use"})
	s.settledAt("dead, asked until b's push", "a", since, true, true)

	s.advance(time.Second)
	result, err := s.Revive(s.t.Context(), "orders", inspect.DeadIDs("a"))
	if err != nil || result.Handled != 1 {
		t.Fatalf("revived %d, %v", result.Handled, err)
	}
	revived := s.clock.Now()
	s.settledAt("revived, asked with the zero time", "a", time.Time{}, false, false)
	s.settledAt("revived, asked until the revive", "a", revived, false, false)
	s.settledAt("revived, asked until b's push", "a", since, true, false)

	s.settle(s.claim(), core.Outcome{Kind: core.Done})
	s.settledAt("done after the revive", "a", time.Time{}, true, false)
}

// A record that the store can't read may hold pushes, so nothing is settled.
func TestSettledOfADamagedRecord(t *testing.T) {
	s := newFixture(t)
	s.push("a", 0, "p")
	damaged := storekit.Intercept(s.store, func(
		ctx context.Context,
		call storekit.Call,
		next func(context.Context) error,
	) error {
		err := next(ctx)
		if reply, ok := call.Reply.(*ports.PendingReply); ok {
			reply.IDs[0] = ports.Pending{Shard: reply.IDs[0].Shard, Damaged: true}
		}
		return err
	})
	settled, dead, err := inspect.New(damaged, inspect.Options{}).Settled(t.Context(), "orders", "a", time.Time{})
	if settled || dead || err == nil || !strings.Contains(err.Error(), "can't read") {
		t.Errorf("settled %v, dead %v, error %v", settled, dead, err)
	}
}

func TestSettledReturnsErrors(t *testing.T) {
	s := newFixture(t)
	for _, id := range []string{"", "line\nbreak"} {
		if settled, _, err := s.Settled(t.Context(), "orders", id, time.Time{}); settled || err == nil {
			t.Errorf("id %q: settled %v, error %v", id, settled, err)
		}
	}
	if settled, _, err := s.Settled(t.Context(), "unknown", "a", time.Time{}); settled || err == nil {
		t.Errorf("an unknown queue: settled %v, error %v", settled, err)
	}
}
