package testservers

import (
	"context"
	"os"
	"testing"
)

// Durable is a server that stores on disk what it acknowledges. A test may stop it, and start it
// again on the same port with what it has stored. It ends with the test.
type Durable struct {
	// URL is for its clients.
	URL   string
	group *group
	serve func(context.Context) error
}

// DurableRedis starts a Redis with the settings of its guide: appendonly, and appendfsync always.
func DurableRedis(t testing.TB) *Durable {
	t.Helper()
	d := durable(t, redisServer(), func(ctx context.Context, g *group, dir string) error {
		command := redisCommand(redisServer(), g, 0, "--appendonly", "yes", "--appendfsync", "always")
		if err := g.start(inDirectory(dir, command)...); err != nil {
			return err
		}
		return g.until(ctx, pinged(g.address(0)))
	})
	d.URL = "redis://" + d.group.address(0)
	return d
}

// DurablePostgres starts a Postgres with its default configuration.
func DurablePostgres(t testing.TB) *Durable {
	t.Helper()
	d := durable(t, postgresServer(), func(ctx context.Context, g *group, dir string) error {
		command := []string{"sh", "-c", runPostgres, "sh", g.port(0), g.machine.bind(), ""}
		if err := g.start(inDirectory(dir, command)...); err != nil {
			return err
		}
		return g.until(ctx, func(ctx context.Context) error { return connected(ctx, postgresURL(g, 0)) })
	})
	d.URL = postgresURL(d.group, 0)
	return d
}

func durable(t testing.TB, p program, serve func(_ context.Context, _ *group, dir string) error) *Durable {
	t.Helper()
	dir, err := os.MkdirTemp("", "testservers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil { // the server may run under another account
		t.Fatal(err)
	}

	g, err := form(p, 1, func(ctx context.Context, g *group) error { return serve(ctx, g, dir) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.end)
	return &Durable{group: g, serve: func(ctx context.Context) error { return serve(ctx, g, dir) }}
}

// inDirectory is a command that runs in a directory, which is created if it is missing there.
func inDirectory(dir string, command []string) []string {
	return append([]string{"sh", "-c", `mkdir -p "$1/data" && cd "$1/data" && shift && exec "$@"`, "sh", dir}, command...)
}

// Stop ends the server at once, as a crash would.
func (d *Durable) Stop() {
	for _, k := range d.group.supervisors {
		k.end()
	}
	d.group.supervisors = nil
}

// Start starts the server again, and returns when it serves.
func (d *Durable) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	defer cancel()
	if err := d.serve(ctx); err != nil {
		t.Fatal(err)
	}
}
