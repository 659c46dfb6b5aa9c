package testservers

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Schema creates an empty schema on a Postgres that other programs may use too, and returns its
// name, which needs no quotes. The schema is dropped with its content when the test has ended. A
// test may take as many schemas as it likes.
func Schema(t testing.TB, pool *pgxpool.Pool) string {
	t.Helper()
	name := "test_" + strings.ToLower(rand.Text()[:13])
	if _, err := pool.Exec(context.Background(), "CREATE SCHEMA "+name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := pool.Exec(ctx, "DROP SCHEMA "+name+" CASCADE"); err != nil {
			// The test may have stopped its server, which ends with it.
			t.Logf("drop schema %s: %v", name, err)
		}
	})
	return name
}
