package testservers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The servers of a [PostgresPair], by their ports.
const (
	thePrimary = iota
	theStandby
	pairGroup
)

// PostgresPair is a Postgres and a hot standby that follows it, both a test's alone.
type PostgresPair struct {
	// Primary and Standby are pools on the first and on the second server, also after a promotion.
	Primary, Standby *pgxpool.Pool

	group *group
}

// PostgresWithStandby starts a pair, which ends with the test. The standby has and shows everything
// that the primary has acknowledged, because synchronous_commit is remote_apply. Once the primary
// has ended, the standby waits for no other server. The settings are those of both. A machine that
// has no pg_basebackup beside its Postgres skips the test, unless it is CI.
func PostgresWithStandby(t testing.TB, settings ...string) *PostgresPair {
	t.Helper()
	copies, err := copyProgram(postgresServer())
	if err != nil {
		Missing(t, err)
	}

	settings = append([]string{"fsync=off"}, settings...)
	g, err := form(postgresServer(), pairGroup, func(ctx context.Context, g *group) error {
		return pair(ctx, g, copies, settings)
	})
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(g.end)
	return &PostgresPair{
		Primary: postgresPool(t, postgresURL(g, thePrimary)),
		Standby: postgresPool(t, postgresURL(g, theStandby)),
		group:   g,
	}
}

// URL names both servers to [pgxpool.ParseConfig], for connections to the one that writes.
func (p *PostgresPair) URL() string {
	return fmt.Sprintf("postgres://postgres@%s,%s/postgres?sslmode=disable&target_session_attrs=read-write",
		p.group.address(thePrimary), p.group.address(theStandby))
}

// KillPrimary ends the primary at once, as a crash would.
func (p *PostgresPair) KillPrimary() { p.group.supervisors[thePrimary].end() }

// KillStandby ends the standby at once: what the primary commits from then on waits for it.
func (p *PostgresPair) KillStandby() { p.group.supervisors[theStandby].end() }

// Promote makes the standby the primary, and returns when it writes.
func (p *PostgresPair) Promote(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	var promoted bool
	err := p.Standby.QueryRow(ctx, `SELECT pg_promote(wait_seconds => $1)`, int(Patience.Seconds())).Scan(&promoted)
	if err != nil || !promoted {
		t.Fatalf("pg_promote returned %t, %v", promoted, err)
	}
}

// copyProgram returns the program that copies a server that runs, or an error if this machine has
// Postgres without it, as some builds have.
func copyProgram(p program) (string, error) {
	const name = "pg_basebackup"
	server, err := p.path()
	if err != nil || os.Getenv("SKEIN_TEST_VIA") == "docker" {
		return name, nil // the image has it
	}
	if server, err = filepath.EvalSymlinks(server); err != nil {
		return "", err
	}
	copies, err := exec.LookPath(filepath.Join(filepath.Dir(server), name))
	if err != nil {
		return "", fmt.Errorf("a standby is made by %s, which is not beside %s: %w", name, server, err)
	}
	return copies, nil
}

// runStandby copies the server on the port $2 of this machine into the working directory, by
// the program $1, and serves the copy on the port $3 of the address $4, as a standby that
// follows it under the name $5. The settings follow.
const runStandby = findPostgres + `
copies=$1 primary=$2 port=$3 bind=$4 name=$5 && shift 5` + settingsAsFlags + `
"$copies" --dbname="host=127.0.0.1 port=$primary user=postgres" --pgdata=data ` +
	`--checkpoint=fast --write-recovery-conf --no-sync || exit
exec postgres -D data -p "$port" -c listen_addresses="$bind" -c unix_socket_directories= -c cluster_name="$name" "$@"
`

const standbyName = "standby"

// pair starts a primary and a standby, which the primary waits for from the first commit on.
func pair(ctx context.Context, g *group, copies string, settings []string) error {
	waiting := append([]string{"synchronous_standby_names=" + standbyName, "synchronous_commit=remote_apply"},
		settings...)
	if err := g.startPostgres(ctx, thePrimary, "", waiting...); err != nil {
		return err
	}

	command := []string{
		"sh", "-c", runStandby, "sh", copies, g.port(thePrimary), g.port(theStandby), g.machine.bind(), standbyName,
	}
	if err := g.start(append(command, settings...)...); err != nil {
		return err
	}

	if err := g.until(ctx, func(ctx context.Context) error {
		return connected(ctx, postgresURL(g, theStandby))
	}); err != nil {
		return err
	}

	return g.until(ctx, func(ctx context.Context) error { return waitedFor(ctx, postgresURL(g, thePrimary)) })
}

// waitedFor checks whether a primary waits for its standby.
func waitedFor(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	var follows bool
	err = conn.QueryRow(
		ctx,
		`SELECT EXISTS (SELECT FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = 'sync')`,
	).Scan(&follows)
	if err == nil && !follows {
		err = errors.New("the standby does not follow yet")
	}
	return err
}
