package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"
)

// The mix: mixedWorkers handlers run at once. One in mixedLongEvery takes mixedLong and the others
// ioWait.
const (
	mixedWorkers   = 100
	mixedLongEvery = 100
	mixedLong      = time.Second
	mixedShards    = 16 // instead of the default number
)

// mixedMean is how long a handler of mixed takes on average.
const mixedMean = (mixedLong + (mixedLongEvery-1)*ioWait) / mixedLongEvery

// mixedInterval is the time between two pushes. The pushed jobs use 80 % of the workers' capacity.
const mixedInterval = mixedMean * 100 / 80 / mixedWorkers

// mixedTick is the time between two rounds of pushes. A round pushes the due jobs, in one call if
// the system can.
const mixedTick = 2 * time.Millisecond

// mixedLasts is how long jobs are pushed, for each job of the other works: eight seconds by
// default, and at least mixedAtLeast. The first quarter fills the workers with long jobs and is not
// counted.
const (
	mixedLasts   = 40 * time.Microsecond
	mixedAtLeast = 200 * time.Millisecond
	mixedWarmUp  = 4
)

// mixedGrace is how long after the last push jobs may still start. A job that has not started by
// then has waited at least until then.
const mixedGrace = 5 * time.Second

// mixedProbe pushes jobs at a fixed rate, whether or not the earlier jobs are done.
func mixedProbe(name, setting string, open opener) *probe {
	return &probe{
		name: "mixed, " + name + ", " + setting,
		measure: func(ctx context.Context, l *lab) ([]reading, error) {
			s, err := open(ctx, l)
			if err != nil {
				return nil, err
			}

			lasts := max(mixedAtLeast, time.Duration(l.jobs)*mixedLasts)
			m := newMixed(lasts)
			cpu, err := m.run(ctx, l, s)
			if err != nil {
				return nil, err
			}

			l.noteTurns(s)
			return m.readings(l, reading{system: name, setting: setting}, cpu)
		},
	}
}

// mixedSkein returns Skein with a number of shards, which is 0 for the default.
func mixedSkein(shards int) *probe {
	setting := skeinSetting{lanes: mixedWorkers, shards: shards}
	return mixedProbe(skeinName, setting.String(), withSkein(setting))
}

func mixedAsynq() *probe {
	return mixedProbe(asynqName, fmt.Sprintf("concurrency %d", mixedWorkers), withAsynq(mixedWorkers))
}

// mixedRiver returns River at the pace of its bench command: at its default pace it handles a
// fourth of the pushed jobs.
func mixedRiver() *probe {
	setting := riverBench
	setting.workers = mixedWorkers
	return mixedProbe(riverName, setting.String(), withRiver(setting))
}

// mixed is a run: its jobs, when each is due to be pushed, and how long it takes.
type mixed struct {
	*waiting
	jobs []job
	long []bool
	// began is when the first job was due to be pushed, and over when the server was stopped, counted
	// from base as starts are.
	began, over time.Duration
}

// newMixed draws which jobs are long, the same for every system and run.
func newMixed(lasts time.Duration) *mixed {
	n := int(lasts / mixedInterval)
	m := &mixed{jobs: newJobs(n), long: make([]bool, n)}
	draw := rand.New(rand.NewPCG(1, 2))
	for i := range m.long {
		m.long[i] = draw.IntN(mixedLongEvery) == 0
	}
	m.waiting = newWaiting(m.jobs, len(m.jobs)-1, func(number int) time.Duration {
		if m.long[number] {
			return mixedLong
		}
		return ioWait
	})
	return m
}

// due returns when a job is to be pushed, counted from base.
func (m *mixed) due(number int) time.Duration {
	return m.began + time.Duration(number)*mixedInterval
}

// run pushes all jobs while a server handles them, and stops it when all have started or mixedGrace
// is over. The processor time is measured until then.
func (m *mixed) run(ctx context.Context, l *lab, s system) (cpu cpuPerJob, err error) {
	stop, err := s.serve(ctx, m.handle)
	if err != nil {
		return cpu, err
	}

	meter := l.startMeter(ctx)
	m.began = time.Since(m.base)
	if err := m.push(ctx, s); err != nil {
		return cpu, errors.Join(err, stop())
	}

	select {
	case err = <-m.done:
	case <-time.After(mixedGrace):
	case <-ctx.Done():
		err = context.Cause(ctx)
	}

	handled := int(m.ended.Load())
	_, spent := meter.read(ctx)
	m.over = time.Since(m.base)
	if err != nil {
		return cpu, errors.Join(err, stop())
	}
	return spent.per(handled), m.stopped(ctx, s, stop, len(m.jobs))
}

// push pushes each job as soon as possible after it is due: from one goroutine or, if the system
// has no call for many jobs, from ten.
func (m *mixed) push(ctx context.Context, s system) error {
	push := func(jobs []job) error { return each(ctx, fillers, jobs, s.push) }
	if many, ok := s.(batcher); ok {
		push = func(jobs []job) error { return many.pushMany(ctx, jobs, 1) }
	}

	for pushed := 0; pushed < len(m.jobs); time.Sleep(mixedTick) {
		due := min(len(m.jobs), 1+int((time.Since(m.base)-m.began)/mixedInterval))
		if due == pushed {
			continue
		}

		if err := push(m.jobs[pushed:due]); err != nil {
			return err
		}
		pushed = due
	}
	return nil
}

// readings returns the rate at which jobs started, and how long short jobs waited from the time
// when their push was due.
func (m *mixed) readings(l *lab, row reading, cpu cpuPerJob) ([]reading, error) {
	var waits []float64
	var started int

	for i := range m.jobs {
		at, ok := m.startOf(i)
		if ok {
			started++
		} else {
			at = m.over
		}
		if !m.long[i] && i >= len(m.jobs)/mixedWarmUp {
			waits = append(waits, float64(at-m.due(i))/float64(time.Millisecond))
		}
	}

	first, last := m.startsWithin()
	if first == last {
		return nil, fmt.Errorf("%d of %d jobs had started %v after the last push", started, len(m.jobs), mixedGrace)
	}
	if n := len(m.jobs) - started; n > 0 {
		fmt.Fprintf(l.log, "    %d of %d jobs had not started %v after the last push\n", n, len(m.jobs), mixedGrace)
	}

	pace, p50, p99 := row, row, row
	pace.unit, pace.value, pace.cpu = perSecond, rate(started, last-first), cpu
	p50.unit, p50.value = millisP50, percentile(waits, 50)
	p99.unit, p99.value = millisP99, percentile(waits, 99)
	return []reading{pace, p50, p99}, nil
}
