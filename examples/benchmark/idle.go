package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/ports"
)

// idleLasts is how long a server is watched, for each job of the other works: ten seconds by
// default, and at least idleAtLeast. Before that, the server gets all its leases, and has a fifth
// of that time to become idle.
const (
	idleLasts   = 50 * time.Microsecond
	idleAtLeast = 500 * time.Millisecond
	idleSettles = 5
)

// Units of an idle server's costs.
const (
	scriptsPerSecond      = "scripts/s"
	commandsPerSecond     = "commands/s"
	transactionsPerSecond = "transactions/s"
	processCPUPerSecond   = "ms of CPU/s, process"
	databaseCPUPerSecond  = "ms of CPU/s, database"
)

// idleProbes measure a server at default options, and one with manyLanes.
func idleProbes() []*probe {
	return []*probe{idleProbe(skeinSetting{lanes: skein.DefaultLanes}), idleProbe(manyLanes)}
}

// idleProbe measures the costs of a server that has all its leases and nothing to do.
func idleProbe(setting skeinSetting) *probe {
	name := setting.String()
	return &probe{name: "idle, " + name, measure: func(ctx context.Context, l *lab) (_ []reading, err error) {
		leases := newLeaseCounter(setting.shardCount())
		setting := setting
		setting.observer = leases

		s, err := withSkein(setting)(ctx, l)
		if err != nil {
			return nil, err
		}

		stop, err := s.serve(ctx, func([]byte) {})
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()

		if err := leases.wait(ctx); err != nil {
			return nil, err
		}

		lasts := max(idleAtLeast, time.Duration(l.jobs)*idleLasts)
		time.Sleep(lasts / idleSettles)
		return l.idle(ctx, lasts, reading{system: skeinName, setting: name})
	}}
}

// idle counts for a while the work of the database.
func (l *lab) idle(ctx context.Context, lasts time.Duration, row reading) ([]reading, error) {
	m := l.startMeter(ctx)
	before, err := l.calls(ctx)
	if err != nil {
		return nil, err
	}

	select {
	case <-time.After(lasts):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}

	after, err := l.calls(ctx)
	if err != nil {
		return nil, err
	}

	took, cpu := m.read(ctx)
	var readings []reading
	add := func(unit string, count float64) {
		row.unit, row.value = unit, count/took.Seconds()
		readings = append(readings, row)
	}

	for i, c := range after {
		add(c.unit, float64(c.count-before[i].count))
	}
	add(processCPUPerSecond, float64(cpu.client)/float64(time.Millisecond))
	add(databaseCPUPerSecond, float64(cpu.database)/float64(time.Millisecond))
	// A processor time of 0 is unknown.
	return slices.DeleteFunc(readings, func(x reading) bool { return x.value == 0 }), nil
}

// calls is the number of calls of one kind that a database has received.
type calls struct {
	unit  string
	count int64
}

// calls returns the number of calls of the database so far.
func (l *lab) calls(ctx context.Context) ([]calls, error) {
	if l.postgres != nil {
		return postgresCalls(ctx, l.postgres)
	}
	return redisCalls(ctx, l.redis)
}

// redisCalls returns the numbers of scripts and of all commands, also of those that scripts call.
func redisCalls(ctx context.Context, client *goredis.Client) ([]calls, error) {
	info, err := client.Info(ctx, "commandstats").Result()
	if err != nil {
		return nil, err
	}
	scripts, commands := calls{unit: scriptsPerSecond}, calls{unit: commandsPerSecond}
	for name, count := range commandCalls(info) {
		commands.count += count
		if strings.HasPrefix(name, "eval") {
			scripts.count += count
		}
	}
	return []calls{scripts, commands}, nil
}

// commandCalls returns how often each command was called, by the reply to INFO.
func commandCalls(info string) map[string]int64 {
	all := map[string]int64{}
	for line := range strings.SplitSeq(info, "\r\n") {
		var count int64
		name, rest, ok := strings.Cut(strings.TrimPrefix(line, "cmdstat_"), ":")
		if _, err := fmt.Sscanf(rest, "calls=%d", &count); ok && err == nil {
			all[name] = count
		}
	}
	return all
}

// postgresCalls returns the number of transactions of the whole database. A single statement counts
// as one. Each connection reports its transactions up to a second late.
func postgresCalls(ctx context.Context, pool *pgxpool.Pool) ([]calls, error) {
	c := calls{unit: transactionsPerSecond}
	err := pool.QueryRow(ctx,
		"SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()").Scan(&c.count)
	return []calls{c}, err
}

// leaseCounter waits until a server has a number of leases.
type leaseCounter struct {
	ports.NopObserver
	missing atomic.Int64
	all     chan struct{} // closed when the server has them
}

func newLeaseCounter(want int) *leaseCounter {
	c := &leaseCounter{all: make(chan struct{})}
	c.missing.Store(int64(want))
	return c
}

// LeaseChanged implements ports.Observer.
func (c *leaseCounter) LeaseChanged(e ports.LeaseEvent) {
	if e.Change == ports.LeaseAcquired && c.missing.Add(-1) == 0 {
		close(c.all)
	}
}

// wait returns when the server has all leases.
func (c *leaseCounter) wait(ctx context.Context) error {
	select {
	case <-c.all:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(drainedWithin):
		return fmt.Errorf("%d leases are missing after %v", c.missing.Load(), drainedWithin)
	}
}
