package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
)

// The log has a store's address, and nothing secret.
func TestAStoreSaysWhereItIs(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://ann:secret@h:7/db")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if got, want := postgres.New(pool, postgres.Options{Schema: "mine"}).String(),
		`postgres h:7/db schema "mine"`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := postgres.New(nil, postgres.Options{}).String(); got != "postgres without a pool" {
		t.Errorf("%q of no pool", got)
	}
}
