package postgres_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// waits waits until the given number of sessions of that name wait for locks.
func (g *guarded) waits(name string, sessions int) {
	g.t.Helper()
	for end := time.Now().Add(testservers.Patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		var n int
		g.must(g.pool.QueryRow(g.t.Context(), `SELECT count(*) FROM pg_stat_activity
			WHERE application_name = $1 AND wait_event_type = 'Lock'`, name).Scan(&n))
		if n >= sessions {
			return
		}
	}
	g.t.Fatalf("%s: fewer than %d ever waited for locks", name, sessions)
}

// While a turn that has seen an empty inbox waits, a transaction commits a push for an id, and
// direct pushes for the same id follow. Their payloads are claimed in this order.
func TestPostgresTurnIsNotOvertakenByWhatCommitsBesideIt(t *testing.T) {
	t.Parallel()
	type block func(g *guarded) (unlock func(), settle []core.Settlement)
	usual := func(g *guarded) (func(), []core.Settlement) {
		return g.lock(fmt.Sprintf("LOCK TABLE %s.claimed IN ACCESS EXCLUSIVE MODE", g.schema)), nil
	}
	merging := func(g *guarded) (func(), []core.Settlement) {
		g.push(g.store, core.When{}, "z")
		z := g.claim(1)[0]
		g.push(g.store, core.In(time.Hour), "z")
		return g.lockRows("jobs", "z"), []core.Settlement{failed(z)}
	}
	for name, tt := range map[string]struct {
		block block
		// later is the entry that is pushed directly after the transaction.
		later []string
	}{
		"a usual turn":                           {usual, []string{"second"}},
		"a turn that merges":                     {merging, []string{"second"}},
		"a turn that claims several payloads":    {merging, []string{"second", "third"}},
		"a usual turn that meets several of one": {usual, []string{"second", "third"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGuarded(t)
			session := "turns of " + g.schema
			g.store = g.openAs(session, still())
			pusher := g.open(still())
			unlock, settle := tt.block(g)
			replies := make(chan ports.TurnReply, 1)
			go func() {
				defer close(replies) // also if the turn fails the test
				replies <- g.next(10, settle...)
			}()
			g.waits(session, 1)
			g.pushData(pusher, true, "first")
			g.pushData(pusher, false, tt.later...)
			unlock()
			claims := (<-replies).Claims
			for range 3 {
				claims = append(claims, g.claim(10)...)
			}
			var got []string
			for _, c := range claims {
				for _, p := range c.Payloads {
					if c.ID == "x" {
						got = append(got, string(p.Data))
					}
				}
			}
			if diff := cmp.Diff(append([]string{"first"}, tt.later...), got); diff != "" {
				t.Errorf("the payloads in the order in which they were claimed (-want +got):\n%s", diff)
			}
		})
	}
}

// pushData pushes payloads for the id x with rising scores, in a transaction or directly.
func (g *guarded) pushData(s *postgres.Store, apart bool, data ...string) {
	g.t.Helper()
	r := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1}
	for i, d := range data {
		score := float64(i)
		if !apart {
			score++
		}
		r.Entries = append(r.Entries, core.Entry{ID: "x", Payload: core.Payload{Data: []byte(d), Score: score}})
	}
	if !apart {
		_, err := s.Push(g.t.Context(), r)
		g.must(err)
		return
	}
	g.must(pgx.BeginFunc(g.t.Context(), g.pool, func(tx pgx.Tx) error {
		_, err := s.Tx(tx).Push(g.t.Context(), r)
		return err
	}))
}
