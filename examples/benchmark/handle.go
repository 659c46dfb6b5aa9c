package main

import (
	"context"
	"fmt"
)

// handleSkein handles jobs at default options, but for prefetch, which is 0 for
// the default.
func handleSkein(setting string, prefetch int) *probe {
	return &probe{name: "handle, skein, " + setting, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		if err := l.flush(ctx); err != nil {
			return nil, err
		}
		return handle(ctx, newSkein(l.redis, prefetch), newJobs(l.jobs), reading{system: skeinName, setting: setting})
	}}
}

// handleAsynq handles jobs with so many at once.
func handleAsynq(concurrency int) *probe {
	setting := fmt.Sprintf("concurrency %d", concurrency)
	return &probe{name: "handle, asynq, " + setting, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		if err := l.flush(ctx); err != nil {
			return nil, err
		}
		return handle(ctx, newAsynq(l.redis, concurrency), newJobs(l.jobs), reading{system: asynqName, setting: setting})
	}}
}

// handle measures how fast stored jobs are handled, from the server's start until
// the store has none.
func handle(ctx context.Context, s system, jobs []job, row reading) ([]reading, error) {
	if err := s.fill(ctx, jobs); err != nil {
		return nil, err
	}
	if err := expect(ctx, s, len(jobs)); err != nil {
		return nil, err
	}
	took, _, err := drain(ctx, s, jobs)
	if err != nil {
		return nil, err
	}
	row.unit, row.value = perSecond, rate(len(jobs), took)
	return []reading{row}, nil
}
