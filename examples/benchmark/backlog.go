package main

import (
	"context"
	"fmt"
	"time"
)

// backlogOf returns a backlog of a size.
func backlogOf(size int) *probe {
	return backlogProbe(fmt.Sprint(size), func(int) int { return size })
}

// backlogTimes returns a backlog with the given multiple of the usual jobs.
func backlogTimes(factor int) *probe {
	return backlogProbe(fmt.Sprintf("%d times the jobs", factor), func(jobs int) int { return factor * jobs })
}

// backlogProbe measures how fast a backlog is handled, from the first job's start until the store
// has none. A small backlog is filled and handled again until as many jobs were handled as in other
// works.
func backlogProbe(name string, sizeOf func(jobs int) int) *probe {
	return &probe{name: "backlog, skein, " + name, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		size, handled := sizeOf(l.jobs), 0
		jobs, setting := newJobs(size), fmt.Sprintf("backlog of %d", size)
		var took time.Duration
		var cpu cpuTime

		for handled < max(l.jobs, size) {
			s, err := l.system(ctx, skeinName)
			if err != nil {
				return nil, err
			}

			d, err := l.storeAndDrain(ctx, s, jobs)
			if err != nil {
				return nil, err
			}
			handled, took, cpu = handled+size, took+d.fromFirst, cpu.plus(d.cpu)
		}

		return []reading{
			{system: skeinName, setting: setting, unit: perSecond, value: rate(handled, took), cpu: cpu.per(handled)},
		}, nil
	}}
}
