package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/skeinq/skein/core"
)

// manyLanes is the setting of a very large server, with a shard for each lane.
var manyLanes = skeinSetting{lanes: 1_000, shards: 1_000}

// How often a measurement starts a server. On Postgres it does so less often, because each start
// has tables of its own. There are fewer starts if -jobs is small: one for each startJobs jobs.
const (
	redisStarts    = 10
	postgresStarts = 5
	startJobs      = 10_000
)

// startHighest is the highest number of a job that waits for the server.
const startHighest = 99_999

// startProbes measure the time from a server's start to its first job's.
func startProbes(starts int) []*probe {
	shards := manyLanes.shards
	draw := rand.New(rand.NewPCG(1, 2))
	inOne := func() []job { return []job{newJob(draw.IntN(startHighest + 1))} }
	inEach := func() []job { return jobsInEach(shards) }
	return []*probe{
		startProbe(fmt.Sprintf("%v, a job in one shard", manyLanes), starts, inOne),
		startProbe(fmt.Sprintf("%v, a job in each shard", manyLanes), starts, inEach),
	}
}

// jobsInEach returns a job for each of the given number of shards.
func jobsInEach(shards int) []job {
	var jobs []job
	have := make([]bool, shards)
	for number := 0; len(jobs) < shards; number++ {
		j := newJob(number)
		if shard := core.ShardOf(j.id, shards); !have[shard] {
			have[shard] = true
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// startProbe starts a server again and again, each time on an empty database in which jobs wait for
// it. The first start is the time when the first of these jobs starts, and the last start the time
// when all have started.
func startProbe(setting string, starts int, waitingJobs func() []job) *probe {
	return &probe{name: "start, " + setting, measure: func(ctx context.Context, l *lab) ([]reading, error) {
		var firsts, lasts []float64

		for range max(1, min(starts, l.jobs/startJobs)) {
			first, last, err := l.startOnce(ctx, waitingJobs())
			if err != nil {
				return nil, err
			}
			firsts = append(firsts, float64(first)/float64(time.Millisecond))
			lasts = append(lasts, float64(last)/float64(time.Millisecond))
		}

		row := reading{system: skeinName, setting: setting}
		readings := percentiles(row, ", first start", firsts)
		if len(waitingJobs()) > 1 {
			readings = append(readings, percentiles(row, ", last start", lasts)...)
		}
		return readings, nil
	}}
}

// percentiles returns the p50 and the p99 of some milliseconds as two readings.
func percentiles(row reading, of string, values []float64) []reading {
	p50, p99 := row, row
	p50.setting, p50.unit, p50.value = row.setting+of, millisP50, percentile(values, 50)
	p99.setting, p99.unit, p99.value = row.setting+of, millisP99, percentile(values, 99)
	return []reading{p50, p99}
}

// startOnce returns the times from a server's start to the start of the first and of the last job.
func (l *lab) startOnce(ctx context.Context, jobs []job) (first, last time.Duration, err error) {
	s, err := withSkein(manyLanes)(ctx, l)
	if err != nil {
		return 0, 0, err
	}
	if err := stored(ctx, l, s, jobs); err != nil {
		return 0, 0, err
	}

	w := newWaiting(jobs, startHighest, func(int) time.Duration { return 0 })
	stop, err := s.serve(ctx, w.handle)
	if err != nil {
		return 0, 0, err
	}

	select {
	case err = <-w.done:
	case <-time.After(drainedWithin):
		err = fmt.Errorf("%d of %d jobs have started within %v", w.ended.Load(), len(jobs), drainedWithin)
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	if err != nil {
		return 0, 0, errors.Join(err, stop())
	}

	first, last = w.startsWithin()
	return first, last, w.stopped(ctx, s, stop, len(jobs))
}
