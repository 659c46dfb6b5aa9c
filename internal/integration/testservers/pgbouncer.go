package testservers

import (
	"context"
	"errors"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
)

func pgBouncerProgram() program {
	return program{
		binary:       "pgbouncer",
		elsewhere:    "/usr/sbin/pgbouncer",
		signal:       "KILL",
		unprivileged: true,
		get:          "for PgBouncer install pgbouncer (apt-get install pgbouncer)",
	}
}

// runPgBouncer forwards connections to the port $1 of this machine to the server at the host
// $2 and the port $3. Lines of the configuration follow.
const runPgBouncer = `
command -v pgbouncer >/dev/null || PATH=$PATH:/usr/sbin
port=$1 to_host=$2 to_port=$3 && shift 3
echo '"postgres" ""' >users
cat >pgbouncer.ini <<END
[databases]
* = host=$to_host port=$to_port
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = $port
unix_socket_dir =
auth_type = trust
auth_file = users
END
printf '%s\n' "$@" >>pgbouncer.ini
exec pgbouncer pgbouncer.ini
`

// PgBouncer starts a PgBouncer in front of a pool's server and returns its URL, as
// [pgxpool.ParseConfig] reads it. It accepts the user postgres without a password. The settings are
// lines of its configuration, such as "pool_mode = transaction". A machine that has none skips the
// test, unless it is CI.
func PgBouncer(t testing.TB, pool *pgxpool.Pool, settings ...string) string {
	t.Helper()
	server := pool.Config().ConnConfig

	g, err := form(pgBouncerProgram(), 1, func(ctx context.Context, g *group) error {
		command := append(
			[]string{"sh", "-c", runPgBouncer, "sh", g.port(0), server.Host, strconv.Itoa(int(server.Port))},
			settings...,
		)
		if err := g.start(command...); err != nil {
			return err
		}
		return g.until(ctx, func(ctx context.Context) error { return connected(ctx, postgresURL(g, 0)) })
	})
	if errors.Is(err, errNowhere) {
		Missing(t, err)
	}
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(g.end)
	return postgresURL(g, 0)
}
