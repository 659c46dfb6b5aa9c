package main

import (
	"context"
	"fmt"
	"time"
)

// pushBatchProbe pushes jobs 500 in a call, from so many goroutines.
func pushBatchProbe(goroutines int) *probe {
	setting := fmt.Sprintf("PushMany of %d, %s", pushedMany, plural(goroutines, "goroutine"))
	return &probe{name: "push-batch, skein, " + setting, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		if err := l.flush(ctx); err != nil {
			return nil, err
		}
		s := newSkein(l.redis, 0)
		return pushed(ctx, l, s, reading{system: skeinName, setting: setting}, func(jobs []job) error {
			return s.pushMany(ctx, jobs, goroutines)
		})
	}}
}

// pushOneProbe pushes jobs one in a call, from so many goroutines.
func pushOneProbe(name string, goroutines int) *probe {
	setting := plural(goroutines, "goroutine")
	return &probe{name: "push-one, " + name + ", " + setting, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		s, err := l.system(ctx, name)
		if err != nil {
			return nil, err
		}
		return pushed(ctx, l, s, reading{system: name, setting: setting}, func(jobs []job) error {
			return each(ctx, goroutines, jobs, s.push)
		})
	}}
}

// pushed measures how fast push stores jobs, and checks that it has.
func pushed(ctx context.Context, l *lab, s system, row reading, push func([]job) error) ([]reading, error) {
	jobs := newJobs(l.jobs)
	start := time.Now()
	if err := push(jobs); err != nil {
		return nil, err
	}
	row.unit, row.value = perSecond, rate(len(jobs), time.Since(start))
	return []reading{row}, expect(ctx, s, len(jobs))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
