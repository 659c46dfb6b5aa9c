package inspect_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// serve announces a server of the queue for an hour.
func (s *fixture) serve(name string, draining bool) {
	s.t.Helper()
	n := ports.Node{Owner: "owner of " + name, Name: name, Queues: []string{"orders"}, Lanes: 1, Draining: draining}
	if _, err := s.store.Announce(s.t.Context(), ports.AnnounceRequest{Node: n, TTL: time.Hour}); err != nil {
		s.t.Fatal(err)
	}
}

func TestWhySaysWhatHoldsAJob(t *testing.T) {
	tests := []struct {
		name   string
		arrive func(*fixture)
		want   core.Reason
		says   string
		until  time.Duration // since the epoch
	}{
		{"nothing", func(*fixture) {}, core.NothingQueued, "nothing is queued", 0},
		{"a dead letter", func(s *fixture) { s.dead("x") }, core.OnlyDead, "revive it", 0},
		{"a taken job", func(s *fixture) { s.pushAll("x"); s.claim(); s.advance(time.Second) }, core.InBuffer, "server blue for 1s", 0},
		{"a push for a taken job", func(s *fixture) { s.pushAll("x"); s.claim(); s.pushAll("x") }, core.PredecessorRuns, "server blue", 0},
		{"a job whose server died", func(s *fixture) { s.pushAll("x"); s.claim(); s.advance(2 * time.Hour) }, core.OwnerGone, "server blue for 2h0m0s", 0},
		{"a paused queue", func(s *fixture) { s.pushAll("x"); _ = s.Pause(s.t.Context(), "orders") }, core.QueuePaused, "resume", 0},
		{"a job that has failed", func(s *fixture) { s.failed("x"); s.advance(time.Minute) }, core.BacksOff, "backoff after failure 1, runs in 59m0s", time.Hour},
		{"a job of tomorrow", func(s *fixture) { s.push("x", 24*time.Hour, "p") }, core.NotDueYet, "runs in 24h0m0s", 24 * time.Hour},
		{"nobody there", func(s *fixture) { s.pushAll("x") }, core.NobodyServes, "no server serves the queue", 0},
		{"only servers that drain", func(s *fixture) { s.pushAll("x"); s.serve("blue", true) }, core.NobodyServes, "no server", 0},
		{"a shard without an owner", func(s *fixture) { s.pushAll("x"); s.serve("blue", false) }, core.ShardUnowned, "one of 1 servers", 0},
		{"others in front", func(s *fixture) {
			s.serve("blue", false)
			s.claim() // takes the leases
			s.push("x", 0, "p")
			for _, id := range sameShard("x", 3) {
				s.push(id, -time.Second, "p")
			}
		}, core.BehindOthers, "in front: 3", 0},
		{"nothing in front", func(s *fixture) { s.serve("blue", false); s.claim(); s.pushAll("x") }, core.IsNext, "it is next", 0},
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
			found, err := s.Find(t.Context(), "orders", "x")
			if diff := cmp.Diff(found, v.Found, cmp.AllowUnexported(inspect.Cursor{})); err != nil || diff != "" {
				t.Errorf("what it found (%v, -Find +Why):\n%s", err, diff)
			}
		})
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
	if _, err := newFixture(t).Why(t.Context(), "orders", ""); !errors.Is(err, inspect.ErrInvalidID) {
		t.Errorf("Why of no id: %v", err)
	}
}
