package main

import (
	"context"
	"fmt"
	"time"
)

// hugeBacklog is the work that is done on demand only.
const hugeBacklog = "backlog-huge"

// backlogProbe measures how fast a backlog is handled, from the first job's start
// until the store has none. A small one is filled and handled again until there
// were as many jobs as elsewhere.
func backlogProbe(size int) *probe {
	setting := fmt.Sprintf("backlog of %d", size)
	return &probe{name: "backlog, skein, " + setting, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		jobs, handled := newJobs(size), 0
		var took time.Duration
		for handled < max(l.jobs, size) {
			s, err := l.system(ctx, skeinName)
			if err != nil {
				return nil, err
			}
			if err := s.fill(ctx, jobs); err != nil {
				return nil, err
			}
			_, d, err := drain(ctx, s, jobs)
			if err != nil {
				return nil, err
			}
			handled, took = handled+size, took+d
		}
		return []reading{{system: skeinName, setting: setting, unit: perSecond, value: rate(handled, took)}}, nil
	}}
}
