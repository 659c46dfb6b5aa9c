package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresElsewhere is where Debian keeps Postgres, out of PATH.
const postgresElsewhere = "/usr/lib/postgresql/*/bin"

// startPostgres makes a cluster of its own, with the configuration that initdb writes, and serves
// it on a free port of this machine. The returned function ends and removes it.
func startPostgres(ctx context.Context) (url string, stop func() error, err error) {
	bin, err := postgresBinaries()
	if err != nil {
		return "", nil, err
	}
	port, err := freePort()
	if err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp("", "benchmark")
	if err != nil {
		return "", nil, err
	}

	server, err := servePostgres(bin, dir, port)
	if err != nil {
		return "", nil, errors.Join(err, os.RemoveAll(dir))
	}

	stop = func() error {
		// Killed, it would leave its workers and their shared memory behind.
		err := server.Process.Signal(syscall.SIGQUIT)
		_ = server.Wait() // it reports that it was ended so
		return errors.Join(err, os.RemoveAll(dir))
	}

	url = fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres?sslmode=disable", port)
	if err := postgresAnswers(ctx, url); err != nil {
		return "", nil, errors.Join(fmt.Errorf("postgres does not answer: %w", err), stop())
	}
	return url, stop, nil
}

// postgresBinaries returns the directory of postgres and initdb.
func postgresBinaries() (string, error) {
	path, err := exec.LookPath("postgres")
	if err == nil {
		return filepath.Dir(path), nil
	}
	if found, _ := filepath.Glob(postgresElsewhere); len(found) > 0 {
		return found[len(found)-1], nil
	}
	return "", fmt.Errorf("%w; install PostgreSQL 14 or newer or name a server by -postgres", err)
}

func servePostgres(bin, dir string, port int) (*exec.Cmd, error) {
	initdb := exec.Command(filepath.Join(bin, "initdb"), "--pgdata", dir, "--username=postgres", "--auth=trust",
		"--encoding=UTF8", "--locale=C")
	server := exec.Command(filepath.Join(bin, "postgres"), "-D", dir, "-p", strconv.Itoa(port),
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=")
	for _, cmd := range []*exec.Cmd{initdb, server} {
		if err := unprivileged(cmd, dir); err != nil {
			return nil, err
		}
	}
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("initdb: %w: %s", err, out)
	}
	return server, server.Start()
}

// postgresAnswers waits until a Postgres does.
func postgresAnswers(ctx context.Context, url string) error {
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		conn, err := pgx.Connect(ctx, url)
		if err == nil {
			return conn.Close(ctx)
		}
		if ctx.Err() != nil || time.Since(began) > startWithin {
			return err
		}
	}
}
