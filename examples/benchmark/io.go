package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/riverqueue/river"
)

// ioWait is how long a handler of io waits.
const ioWait = 10 * time.Millisecond

// ioLasts is how long io is measured, for each job of the other works: three seconds by default,
// and at least ioAtLeast.
const (
	ioLasts   = 15 * time.Microsecond
	ioAtLeast = 100 * time.Millisecond
)

// ioSpare is the factor by which the backlog of io exceeds the jobs that could be done.
const ioSpare = 1.1

// ioWorkers is the number of handlers of io that run at once.
var ioWorkers = []int{100, 1_000}

// The jobs a second for which the backlogs of the other systems are made. It is about twice the
// largest rate that was ever measured.
const (
	asynqMost = 15_000
	riverMost = 40_000
)

// ioProbes returns the probes of Skein, of the bare loop, and of the rivals.
func ioProbes(hot bool, others []*probe) []*probe {
	var probes []*probe
	for _, n := range ioWorkers {
		setting, most := fmt.Sprintf("%d at once", n), handlersAtOnce(n)
		probes = append(probes,
			ioTest{skeinName, setting, withSkein(skeinSetting{lanes: n}), most, hot}.probe(),
			ioTest{loopName, setting, withLoop(n, hot), most, hot}.probe())
	}
	return append(probes, others...)
}

func ioAsynq() []*probe {
	var probes []*probe
	for _, n := range ioWorkers {
		t := ioTest{name: asynqName, setting: fmt.Sprintf("concurrency %d", n), open: withAsynq(n)}
		t.most = min(asynqMost, handlersAtOnce(n))
		probes = append(probes, t.probe())
	}
	return probes
}

// ioRiver has River at its default pace and at that of its bench command, each
// with as many workers as Skein has lanes, and at all settings of that command.
func ioRiver() []*probe {
	var settings []riverSetting
	for _, n := range ioWorkers {
		atBench := riverBench
		atBench.workers = n
		settings = append(settings, riverSetting{workers: n}, atBench)
	}
	var probes []*probe
	for _, s := range slices.Concat(settings, []riverSetting{riverBench}) {
		t := ioTest{name: riverName, setting: s.String(), open: withRiver(s)}
		t.most = min(riverMost, s.most())
		probes = append(probes, t.probe())
	}
	return probes
}

// most returns how many jobs a second River could handle of those that take ioWait: as
// many as it has workers, once in a fetch.
func (s riverSetting) most() int {
	cooldown := s.cooldown
	if cooldown == 0 {
		cooldown = river.FetchCooldownDefault
	}
	return int(float64(s.workers) / max(ioWait, cooldown).Seconds())
}

// ioTest is the work io for one system at one setting.
type ioTest struct {
	name, setting string
	open          opener
	// most is the largest number of jobs a second that the system can do, by its setting or by earlier
	// measurements.
	most int
	// hot has all jobs in one shard.
	hot bool
}

// handlersAtOnce returns how many jobs a second the given number of handlers can do at most.
func handlersAtOnce(workers int) int { return int(float64(workers) / ioWait.Seconds()) }

func (t ioTest) probe() *probe {
	name := fmt.Sprintf("io, %s, %s", t.name, t.setting)
	if t.hot {
		name = fmt.Sprintf("io-hot, %s, %s", t.name, t.setting)
	}
	return &probe{name: name, measure: t.measure}
}

// measure lets a server handle a backlog that is too large to finish, for a while, and counts the
// handled jobs.
func (t ioTest) measure(ctx context.Context, l *lab) ([]reading, error) {
	s, err := t.open(ctx, l)
	if err != nil {
		return nil, err
	}

	lasts := max(ioAtLeast, time.Duration(l.jobs)*ioLasts)
	jobs := t.backlog(lasts)
	if err := stored(ctx, l, s, jobs); err != nil {
		return nil, err
	}

	highest, err := number(jobs[len(jobs)-1].payload)
	if err != nil {
		return nil, err
	}

	w := newWaiting(jobs, highest, func(int) time.Duration { return ioWait })
	cpu, err := l.serveFor(ctx, s, w, lasts, len(jobs))
	if err != nil {
		return nil, err
	}

	l.noteTurns(s)
	row := reading{system: t.name, setting: t.setting, unit: perSecond, cpu: cpu}
	row.value = rate(int(w.ended.Load()), w.span())
	return []reading{row}, nil
}

func (t ioTest) backlog(lasts time.Duration) []job {
	n := max(1, int(float64(t.most)*lasts.Seconds()*ioSpare))
	if t.hot {
		return newHotJobs(n)
	}
	return newJobs(n)
}

// serveFor has jobs handled from the first one's start for a while, or until all
// have started, and then stops the server, which lets handlers end. The processor
// time is that until the stop.
func (l *lab) serveFor(
	ctx context.Context,
	s system,
	w *waiting,
	lasts time.Duration,
	jobs int,
) (cpu cpuPerJob, err error) {
	stop, err := s.serve(ctx, w.handle)
	if err != nil {
		return cpu, err
	}

	select {
	case <-w.first:
	case <-time.After(drainedWithin):
		return cpu, errors.Join(fmt.Errorf("no job has started within %v", drainedWithin), stop())
	case <-ctx.Done():
		return cpu, errors.Join(context.Cause(ctx), stop())
	}

	m := l.startMeter(ctx)
	select {
	case err = <-w.done:
	case <-time.After(lasts):
	case <-ctx.Done():
		err = context.Cause(ctx)
	}

	handled := int(w.ended.Load())
	_, spent := m.read(ctx)
	if err != nil {
		return cpu, errors.Join(err, stop())
	}
	return spent.per(handled), w.stopped(ctx, s, stop, jobs)
}
