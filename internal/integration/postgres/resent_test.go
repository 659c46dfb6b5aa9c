package postgres_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/core"
)

// rowCounts counts the rows that the statements of turns return.
type rowCounts struct {
	mu   sync.Mutex
	rows []turnRows
}

// turnRows are the rows of a statement, which is named by the function that it calls.
type turnRows struct {
	Of   string
	Rows int64
}

type statementKey struct{}

func (c *rowCounts) trace(config *pgxpool.Config) { config.ConnConfig.Tracer = c }

func (c *rowCounts) TraceQueryStart(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryStartData) context.Context {
	return context.WithValue(ctx, statementKey{}, q.SQL)
}

func (c *rowCounts) TraceQueryEnd(ctx context.Context, _ *pgx.Conn, q pgx.TraceQueryEndData) {
	for _, name := range []string{"turn", "turn_claims"} {
		if strings.Contains(ctx.Value(statementKey{}).(string), "."+name+"(") {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.rows = append(c.rows, turnRows{name, q.CommandTag.RowsAffected()})
		}
	}
}

// The statement of a turn that is sent again returns its header alone: until its reply has arrived
// the shard is locked. Another statement reads the claims, and the store repeats it if its reply is
// lost.
func TestPostgresAResentTurnReadsItsClaimsUnlocked(t *testing.T) {
	t.Parallel()
	g := newGuarded(t)
	counts := &rowCounts{}
	g.store = g.openAs("counts rows", still(), counts.trace)
	g.push(g.store, core.When{}, "a", "b")
	g.turn.Resent = true
	claims := g.claim(2) // its first call has not arrived
	g.turn.Number--
	again := g.claim(2)
	if diff := cmp.Diff([]string{"a", "b"}, idsOf(claims)); diff != "" {
		t.Errorf("the claims (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(claims, again); diff != "" {
		t.Errorf("the claims of the repeat (-want +got):\n%s", diff)
	}
	want := []turnRows{{"turn", 1}, {"turn_claims", 2}, {"turn", 1}, {"turn_claims", 2}}
	if diff := cmp.Diff(want, counts.rows); diff != "" {
		t.Errorf("the rows of the statements (-want +got):\n%s", diff)
	}

	wire := &losing{}
	reads := &arming{wire: wire, of: ".turn_claims(", once: true}
	g.store = g.openAs("loses replies", still(), wire.dial, func(c *pgxpool.Config) { c.ConnConfig.Tracer = reads })
	g.turn.Number--
	g.claim(2) // from now on the connection has prepared the statements
	reads.active.Store(true)
	g.turn.Number--
	if diff := cmp.Diff(claims, g.claim(2)); diff != "" {
		t.Errorf("the claims after a lost reply (-want +got):\n%s", diff)
	}
}
