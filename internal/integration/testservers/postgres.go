package testservers

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

func postgresServer() program {
	return program{
		binary:     "postgres",
		repository: "postgres",
		tag:        "15",
		elsewhere:  "/usr/lib/postgresql/*/bin/postgres",
		// A killed server would leave its workers and their shared memory behind.
		signal:       "QUIT",
		unprivileged: true,
		get: "for Postgres set SKEIN_TEST_POSTGRES to the URL of a server, or install postgresql 14 or newer " +
			"(apt-get install postgresql), or start Docker",
	}
}

// The shared Postgres, started at its first use. It forgets its data if it crashes, and it sorts
// text as English does and not by bytes.
var sharedPostgres = sync.OnceValues(func() (string, error) {
	const variable = "SKEIN_TEST_POSTGRES"
	if url := fromEnvironment(variable); url != "" {
		if _, err := pgxpool.ParseConfig(url); err != nil {
			return "", fmt.Errorf("%s: %w", variable, err)
		}
		return url, nil
	}
	g, err := postgres("--locale-provider=icu --icu-locale=en-US",
		"fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=400")
	if err != nil {
		return "", err
	}
	return postgresURL(g, 0), nil
})

// Postgres returns a pool of connections to the shared Postgres, which is closed
// when the test has ended. The test's tables are in a [Schema] of its own;
// schemas are cheap, so that a suite which needs hundreds of backends takes one
// pool and many of them.
func Postgres(t testing.TB) *pgxpool.Pool {
	t.Helper()
	return postgresPool(t, PostgresURL(t))
}

// PostgresURL returns the URL of the shared Postgres, as [pgxpool.ParseConfig] reads it.
func PostgresURL(t testing.TB) string {
	t.Helper()
	return must(t, sharedPostgres)
}

// OwnPostgres returns a pool of connections to a Postgres that is this test's alone and ends with
// it. The test may cut, fill or stop it. It has the default configuration, except for the given
// settings, such as "fsync=off". It never comes from the environment.
func OwnPostgres(t testing.TB, settings ...string) *pgxpool.Pool {
	t.Helper()
	g, err := postgres("", settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	return postgresPool(t, postgresURL(g, 0))
}

func postgresPool(t testing.TB, url string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := ofVersion(context.Background(), pool); err != nil {
		t.Fatal(err)
	}
	return pool
}

// postgresURL returns the URL of the server with the i-th port of a group.
func postgresURL(g *group, i int) string {
	return fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", g.address(i))
}

// findPostgres is the part of a script that adds the directory of Debian's Postgres to PATH.
const findPostgres = `
command -v postgres >/dev/null || for bin in /usr/lib/postgresql/*/bin; do PATH=$bin:$PATH; done`

// settingsAsFlags is the part of a script that turns its arguments, which are settings, into flags
// of the server.
const settingsAsFlags = `
for setting; do
	shift && set -- "$@" -c "$setting"
done`

// runPostgres makes a cluster in the working directory, if it has none, and serves it on the port $1 of the address
// $2. $3 are the arguments of initdb; the settings follow.
const runPostgres = findPostgres + `
port=$1 bind=$2 init=$3 && shift 3` + settingsAsFlags + `
# Without these, sessions that plan return memory and request it again all the time, and page faults
# are slow on some machines.
export MALLOC_TOP_PAD_=4194304 MALLOC_TRIM_THRESHOLD_=67108864
# Postgres before version 15 has no choice of the locale provider.
case $(initdb --help) in *--locale-provider*) ;; *) init= ;; esac
if ! [ -e data ]; then
	initdb --pgdata=data --username=postgres --auth=trust --encoding=UTF8 --locale=C $init --no-sync >/dev/null || exit
	echo 'host all all all trust' >>data/pg_hba.conf
fi
exec postgres -D data -p "$port" -c listen_addresses="$bind" -c unix_socket_directories= "$@"
`

func postgres(init string, settings ...string) (*group, error) {
	return form(postgresServer(), 1, func(ctx context.Context, g *group) error {
		return g.startPostgres(ctx, 0, init, settings...)
	})
}

// startPostgres starts a server on the group's i-th port, and returns when it serves.
func (g *group) startPostgres(ctx context.Context, i int, init string, settings ...string) error {
	command := append([]string{"sh", "-c", runPostgres, "sh", g.port(i), g.machine.bind(), init}, settings...)
	if err := g.start(command...); err != nil {
		return err
	}
	return g.until(ctx, func(ctx context.Context) error { return connected(ctx, postgresURL(g, i)) })
}

// connected checks whether a server serves.
func connected(ctx context.Context, url string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// ofVersion fails if the environment requests another major version of Postgres than the pool's
// server has: a test must not seem to pass on a version that it did not run on.
func ofVersion(ctx context.Context, pool *pgxpool.Pool) error {
	want := os.Getenv("SKEIN_TEST_POSTGRES_MAJOR")
	if want == "" {
		return nil
	}
	var version string
	if err := pool.QueryRow(ctx, "SHOW server_version").Scan(&version); err != nil {
		return err
	}
	if !strings.HasPrefix(version, want+".") {
		return fmt.Errorf("this Postgres is %s, and SKEIN_TEST_POSTGRES_MAJOR is %s", version, want)
	}
	return nil
}
