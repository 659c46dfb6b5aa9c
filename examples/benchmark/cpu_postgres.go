package main

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// postgresCPU returns the processor time of a Postgres on this machine: of its first process, of
// those that it has started, and of those of them that have ended. It returns 0 if the server runs
// elsewhere, or without /proc.
func postgresCPU(ctx context.Context, pool *pgxpool.Pool) time.Duration {
	switch pool.Config().ConnConfig.Host {
	case "127.0.0.1", "localhost", "::1":
	default:
		return 0
	}

	var backend int
	if err := pool.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&backend); err != nil {
		return 0
	}

	all := processes()
	mine, ok := all[backend]
	if !ok || mine.name != "postgres" { // it runs in a container
		return 0
	}

	sum := all[mine.parent].own + all[mine.parent].children
	for _, p := range all {
		if p.parent == mine.parent {
			sum += p.own
		}
	}
	return sum
}

// processes returns the processes of this machine that /proc shows, by number.
func processes() map[int]procStat {
	all := map[int]procStat{}

	files, _ := filepath.Glob("/proc/[0-9]*/stat") // the pattern is valid
	for _, file := range files {
		number, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}

		if p, err := parseProcStat(string(text)); err == nil {
			all[number] = p
		}
	}
	return all
}
