package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// A server that answers is not unreachable, whatever it refuses: the exit code is 1, for checks of
// the store 6, and standard error names the reason.
func TestAServerThatAnswersIsNotAway(t *testing.T) {
	t.Parallel()
	pair := testservers.PostgresWithStandby(t)
	must(t, postgres.Migrate(t.Context(), pair.Primary, postgres.MigrateOptions{}))
	standby := pair.Standby.Config().ConnString()

	const findPrimary = "target_session_attrs=read-write"
	for _, tt := range []struct {
		args, url, says string
		code            int
	}{
		{"migrate status", standby, findPrimary, exitFailed},
		{"migrate down --yes --schema skein", standby, findPrimary, exitFailed},
		{"queue pause orders", standby, findPrimary, exitFailed},
		{"check --timeout 1m", standby, findPrimary, 6},
		{"stats", standby, "", 0},
		{"doctor", standby, "checks warn or fail", 6},
	} {
		if code, said := run(t, tt.url, tt.args); code != tt.code || !strings.Contains(said, tt.says) ||
			strings.Contains(said, "tried") {
			t.Errorf("%s on a standby: exit code %d, want %d: %s", tt.args, code, tt.code, said)
		}
	}
}

// A statement that the server ends after statement_timeout is an answer, too.
func TestAStatementTimeoutIsAnAnswer(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	schema := testservers.Schema(t, pool)
	must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}))

	tx, err := pool.Begin(t.Context())
	must(t, err)
	defer func() { must(t, tx.Rollback(context.WithoutCancel(t.Context()))) }()
	_, err = tx.Exec(t.Context(), "LOCK TABLE "+schema+".migrations IN ACCESS EXCLUSIVE MODE")
	must(t, err)

	url := with(with(testservers.PostgresURL(t), "schema", schema), "statement_timeout", "100")
	for _, args := range []string{"check --timeout 1m", "stats", "migrate status"} {
		if code, said := run(t, url, args); code != exitFailed || !strings.Contains(said, "raise statement_timeout") {
			t.Errorf("%s: exit code %d, want %d: %s", args, code, exitFailed, said)
		}
	}

	if code, said := run(t, url, "doctor"); code != 6 || !strings.Contains(said, "checks warn or fail") {
		t.Errorf("doctor: exit code %d, want 6: %s", code, said)
	}
}

// run runs the command and returns its exit code and its standard error.
func run(t *testing.T, url, args string) (code int, said string) {
	t.Helper()
	var out, errors strings.Builder
	p := process{
		stdin: strings.NewReader(""), stdout: &out, stderr: &errors, env: func(string) string { return "" },
		connect: backends.Connect, answersWithin: time.Minute,
	}
	code = p.run(t.Context(), append(strings.Fields(args), "--url", url))
	return code, errors.String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
