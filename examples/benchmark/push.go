package main

import (
	"context"
	"fmt"
)

// pushBatchProbe pushes jobs, pushedMany in a call, from the given number of goroutines.
func pushBatchProbe(name, call string, goroutines int) *probe {
	setting := fmt.Sprintf("%s %d, %s", call, pushedMany, plural(goroutines, "goroutine"))
	return &probe{
		name: "push-batch, " + name + ", " + setting,
		measure: func(ctx context.Context, l *lab) ([]reading, error) {
			s, err := l.system(ctx, name)
			if err != nil {
				return nil, err
			}

			many, ok := s.(batcher)
			if !ok {
				return nil, fmt.Errorf("%s has no call that stores many", name)
			}

			return l.pushed(ctx, s, newJobs(l.jobs), reading{system: name, setting: setting}, func(jobs []job) error {
				return many.pushMany(ctx, jobs, goroutines)
			})
		},
	}
}

// pushOneProbe pushes 1/share of the jobs, one in a call, from the given number of goroutines.
func pushOneProbe(name string, goroutines, share int) *probe {
	setting := plural(goroutines, "goroutine")
	return &probe{
		name: "push-one, " + name + ", " + setting,
		measure: func(ctx context.Context, l *lab) ([]reading, error) {
			s, err := l.system(ctx, name)
			if err != nil {
				return nil, err
			}

			jobs := newJobs(max(1, l.jobs/share))
			return l.pushed(ctx, s, jobs, reading{system: name, setting: setting}, func(jobs []job) error {
				return each(ctx, goroutines, jobs, s.push)
			})
		},
	}
}

// pushed measures how fast push stores jobs, and checks that all are stored.
func (l *lab) pushed(
	ctx context.Context,
	s system,
	jobs []job,
	row reading,
	push func([]job) error,
) ([]reading, error) {
	m := l.startMeter(ctx)
	if err := push(jobs); err != nil {
		return nil, err
	}
	took, cpu := m.read(ctx)
	row.unit, row.value, row.cpu = perSecond, rate(len(jobs), took), cpu.per(len(jobs))
	return []reading{row}, expect(ctx, s, len(jobs))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
