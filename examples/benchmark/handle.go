package main

import (
	"context"
	"fmt"
)

// handleProbe handles 1/share of the jobs by a system.
func handleProbe(name, setting string, share int, open opener) *probe {
	return &probe{
		name: "handle, " + name + ", " + setting,
		measure: func(ctx context.Context, l *lab) ([]reading, error) {
			s, err := open(ctx, l)
			if err != nil {
				return nil, err
			}
			jobs := newJobs(max(1, l.jobs/share))
			return handle(ctx, l, s, jobs, reading{system: name, setting: setting})
		},
	}
}

// handleSkein handles jobs at default options, except for prefetch. 0 means the default.
func handleSkein(setting string, prefetch int) *probe {
	return handleProbe(skeinName, setting, 1, withSkein(skeinSetting{prefetch: prefetch}))
}

// handleAsynq handles jobs with the given concurrency.
func handleAsynq(concurrency int) *probe {
	return handleProbe(asynqName, fmt.Sprintf("concurrency %d", concurrency), 1, withAsynq(concurrency))
}

// handle measures how fast stored jobs are handled, from the server's start until the store has no
// job.
func handle(ctx context.Context, l *lab, s system, jobs []job, row reading) ([]reading, error) {
	d, err := l.storeAndDrain(ctx, s, jobs)
	if err != nil {
		return nil, err
	}
	row.unit, row.value, row.cpu = perSecond, rate(len(jobs), d.fromStart), d.cpu.per(len(jobs))
	return []reading{row}, nil
}

// storeAndDrain drains jobs that it has stored.
func (l *lab) storeAndDrain(ctx context.Context, s system, jobs []job) (drained, error) {
	if err := stored(ctx, l, s, jobs); err != nil {
		return drained{}, err
	}
	d, err := l.drain(ctx, s, jobs)
	if err == nil {
		l.noteTurns(s)
	}
	return d, err
}

// noteTurns logs how many jobs a turn has claimed, if the system counts that.
func (l *lab) noteTurns(s system) {
	if n, ok := s.(interface{ perTurn() float64 }); ok {
		fmt.Fprintf(l.log, "    %.1f jobs in a turn\n", n.perTurn())
	}
}

// stored stores jobs, and leaves the database as it is when they have been there
// for a while.
func stored(ctx context.Context, l *lab, s system, jobs []job) error {
	if err := s.fill(ctx, jobs); err != nil {
		return err
	}
	if err := expect(ctx, s, len(jobs)); err != nil {
		return err
	}
	return l.tidy(ctx)
}
