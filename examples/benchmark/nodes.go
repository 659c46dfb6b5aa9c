package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Parameters of the work nodes. fleetLasts is how long the servers are watched while they are
// idle, and while jobs are pushed, for each job of other works: 20 s by default.
const (
	fleetLasts  = 100 * time.Microsecond
	fleetPushes = 10 * time.Millisecond // from one push to the next
	manyNodes   = 16
)

// Units of the costs of servers that share queues.
const (
	untilEven     = "s until even"
	cpuOfProcess  = "ms of CPU, process"
	cpuOfDatabase = "ms of CPU, database"
)

// fleetProbes measure one server, and many that share the same shards.
func fleetProbes() []*probe {
	of := func(nodes int) *probe {
		return fleetProbe(fleetSetting{nodes: nodes, lanes: 64, queues: 10, shards: 100})
	}
	return []*probe{of(1), of(manyNodes)}
}

// fleetProbe measures the costs of servers that share queues: while they start, are idle and get a
// job now and then, and when one of several dies.
func fleetProbe(setting fleetSetting) *probe {
	return &probe{
		name: "nodes, " + setting.String(),
		measure: func(ctx context.Context, l *lab) (_ []reading, err error) {
			f, err := openFleet(ctx, l, setting)
			if err != nil {
				return nil, err
			}
			defer func() { err = errors.Join(err, f.close()) }()

			all, err := l.fleetStart(ctx, f)
			phases := []func(context.Context, *fleet) ([]reading, error){l.fleetIdle, l.fleetPushed}
			if setting.nodes > 1 {
				phases = append(phases, l.fleetDeath)
			}

			for _, phase := range phases {
				if err != nil {
					return nil, err
				}
				var readings []reading
				readings, err = phase(ctx, f)
				all = append(all, readings...)
			}
			return all, err
		},
	}
}

// fleetStart starts all servers at once.
func (l *lab) fleetStart(ctx context.Context, f *fleet) ([]reading, error) {
	return l.untilEven(ctx, f, "start at once", func() error { return f.start(ctx, l, func([]byte) {}) })
}

// fleetDeath kills one server.
func (l *lab) fleetDeath(ctx context.Context, f *fleet) ([]reading, error) {
	return l.untilEven(ctx, f, "one is killed", func() error { f.killOne(); return nil })
}

// fleetSettles is how long servers that share the shards evenly may take to become idle.
const fleetSettles = 2 * time.Second

// untilEven counts the costs until the shards are shared evenly after a change.
func (l *lab) untilEven(ctx context.Context, f *fleet, what string, change func() error) ([]reading, error) {
	f.calls.take()
	m := l.startMeter(ctx)
	if err := change(); err != nil {
		return nil, err
	}

	even, err := f.awaitEven(ctx)
	if err != nil {
		return nil, err
	}

	_, cpu := m.read(ctx)
	row := f.row(what)
	readings := []reading{row.with(untilEven, even.Sub(m.start).Seconds()),
		row.with(cpuOfProcess, millisOf(cpu.client)), row.with(cpuOfDatabase, millisOf(cpu.database))}

	for _, c := range f.calls.take() {
		readings = append(readings, row.with("calls of "+c.unit, float64(c.count)))
	}

	time.Sleep(fleetSettles)
	return readings, nil
}

// lasts is how long servers are watched.
func (l *lab) lasts() time.Duration { return max(idleAtLeast, time.Duration(l.jobs)*fleetLasts) }

// fleetIdle counts the costs of servers that have nothing to do.
func (l *lab) fleetIdle(ctx context.Context, f *fleet) ([]reading, error) {
	f.calls.take()
	readings, err := l.idle(ctx, l.lasts(), f.row("idle"))
	for _, c := range f.calls.take() {
		readings = append(readings, f.row("idle").with("calls of "+c.unit+"/s", float64(c.count)/l.lasts().Seconds()))
	}
	return readings, err
}

// fleetPushed counts the costs of servers that get a job from another process from time to time.
func (l *lab) fleetPushed(ctx context.Context, f *fleet) ([]reading, error) {
	f.calls.take()
	m := l.startMeter(ctx)

	pushes := 0
	for ticks := time.Tick(fleetPushes); time.Since(m.start) < l.lasts(); pushes++ {
		if err := f.push(ctx, newJob(pushes), pushes); err != nil {
			return nil, err
		}
		<-ticks
	}

	took, cpu := m.read(ctx)
	row := f.row(fmt.Sprintf("a job each %v", fleetPushes))
	perSecond := row.with(perSecond, float64(pushes)/took.Seconds())
	perSecond.cpu = cpu.per(pushes)

	readings := []reading{perSecond}
	for _, c := range f.calls.take() {
		readings = append(readings, row.with("calls of "+c.unit+"/s", float64(c.count)/took.Seconds()))
	}
	return readings, nil
}

// row is a reading of the servers without a value.
func (f *fleet) row(what string) reading {
	return reading{system: skeinName, setting: f.setting.String() + ", " + what}
}

// with returns the reading with a value.
func (r reading) with(unit string, value float64) reading {
	r.unit, r.value = unit, value
	return r
}

func millisOf(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
