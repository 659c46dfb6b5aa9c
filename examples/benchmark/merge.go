package main

import (
	"context"
	"fmt"
)

// mergeIDs is the number of ids of the pushes of merge, and mergePushes the number of pushes.
const (
	mergeIDs    = 1_000
	mergePushes = 100_000
)

// mergeProbe pushes from ten goroutines, one in a call and each with a payload of its own. Then it
// handles them. asynq does not merge: the payloads of one id of Skein are as many tasks there,
// whose ids are those of the payloads.
func mergeProbe(name string) *probe {
	setting := fmt.Sprintf("%d pushes, %d ids, push and handle", mergePushes, mergeIDs)
	return &probe{name: "merge, " + name, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		s, err := l.system(ctx, name)
		if err != nil {
			return nil, err
		}

		jobs, want := newJobs(mergePushes), mergePushes
		if name == skeinName {
			for i := range jobs {
				jobs[i].id = newJob(i % mergeIDs).id
			}
			want = mergeIDs
		}

		m := l.startMeter(ctx)
		if err := each(ctx, fillers, jobs, s.push); err != nil {
			return nil, err
		}
		pushing, cpu := m.read(ctx)

		if err := expect(ctx, s, want); err != nil {
			return nil, err
		}

		handling, err := l.drain(ctx, s, newJobs(mergePushes))
		if err != nil {
			return nil, err
		}

		return []reading{{
			system:  name,
			setting: setting,
			unit:    perSecond,
			value:   rate(mergePushes, pushing+handling.fromStart),
			cpu:     cpu.plus(handling.cpu).per(mergePushes),
		}}, nil
	}}
}
