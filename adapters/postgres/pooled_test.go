package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/ports"
)

func TestConnectionsAreThoseOfThePool(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://localhost/none?pool_max_conns=7")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for want, store := range map[int]ports.Pooled{
		7: postgres.New(pool, postgres.Options{}),
		0: postgres.New(nil, postgres.Options{}),
	} {
		if got := store.Connections(); got != want {
			t.Errorf("%d connections; want %d", got, want)
		}
	}
}
