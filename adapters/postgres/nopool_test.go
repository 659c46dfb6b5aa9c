package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestAStoreWithoutAPoolSaysSo(t *testing.T) {
	store := New(nil, Options{})
	push := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "order-1"}}}

	for name, call := range map[string]func() error{
		"Declare": func() error {
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
			return err
		},
		"Push":    func() error { _, err := store.Push(t.Context(), push); return err },
		"Queues":  func() error { _, err := store.Queues(t.Context()); return err },
		"Wakeups": func() error { _, err := store.Wakeups(t.Context(), core.Shards("orders", 1)); return err },
		"Ping":    func() error { return store.Ping(t.Context()) },
		"Migrate": func() error { return Migrate(t.Context(), nil, MigrateOptions{}) },
	} {
		if err := call(); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s = %v, want ErrUnusable", name, err)
		}
	}
}

func TestHalfOfThePoolIsForTurns(t *testing.T) {
	for conns, want := range map[string]int{"1": 1, "2": 1, "3": 1, "4": 2, "50": 25} {
		pool, err := pgxpool.New(t.Context(), "host=127.0.0.1 port=1 pool_max_conns="+conns)
		if err != nil {
			t.Fatal(err)
		}
		if got := New(pool, Options{}).MaxTurns(); got != want {
			t.Errorf("with %s connections MaxTurns = %d, want %d", conns, got, want)
		}
		pool.Close()
	}
	if got := New(nil, Options{}).MaxTurns(); got != 0 {
		t.Errorf("without a pool MaxTurns = %d, want 0", got)
	}
}

// A migration that no server can carry out is refused before a server is asked; here there is
// none.
func TestMigrateRefusesWhatItDoesNotKnow(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "host=127.0.0.1 port=1 connect_timeout=1")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	for name, o := range map[string]MigrateOptions{
		"a newer version":     {To: NewestVersion() + 1},
		"a negative version":  {To: -1},
		"a reserved schema":   {Schema: "pg_skein"},
		"a name too long":     {Schema: strings.Repeat("x", 64)},
		"a name with a NUL":   {Schema: "a\x00b"},
		"a name not in UTF-8": {Schema: "a\xff"},
	} {
		if err := Migrate(t.Context(), pool, o); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: %v, want ErrUnusable", name, err)
		}
	}
}
