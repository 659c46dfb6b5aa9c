package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/riverqueue/river"
)

// How many jobs each system is sent at most, one after another. asynq gets fewer jobs, because each
// job waits for a poll, a second on average. On Postgres both systems get fewer.
const (
	skeinSamples    = 400
	postgresSamples = 200
	riverSamples    = 30
	asynqSamples    = 20
)

// One in longEvery pauses before a push to Skein is long enough for all of it to
// have gone idle; the others let it only drain.
const longEvery = 40

func latencySkein(samples int) *probe { return latencyOf(samples, withSkein(skeinSetting{})) }

// latencySkeinApart pushes through a store of its own, as another process would.
func latencySkeinApart(samples int) *probe {
	p := latencyOf(samples, withSkeinApart)
	p.name += ", apart"
	return p
}

func latencyOf(samples int, open opener) *probe {
	return latencyProbe(skeinName, samples, open, func(i int) time.Duration {
		if i%longEvery == 0 {
			return time.Second + rand.N(time.Second)
		}
		return 10*time.Millisecond + rand.N(40*time.Millisecond)
	})
}

// latencyRiver pauses at random for several times as long as River waits between
// fetches, so that nothing of the last job is under way.
func latencyRiver() *probe {
	return latencyProbe(riverName, riverSamples, withRiver(riverDefaults), func(int) time.Duration {
		return 4*river.FetchCooldownDefault + rand.N(river.FetchCooldownDefault)
	})
}

// latencyAsynq pauses at random for longer than asynq sleeps between its polls, so
// that a push meets any moment of that sleep.
func latencyAsynq() *probe {
	return latencyProbe(asynqName, asynqSamples, withAsynq(0), func(int) time.Duration {
		return rand.N(2 * time.Second)
	})
}

// trials returns the number of samples, given the number of jobs of other works.
func trials(samples, jobs int) int { return min(samples, max(3, jobs/100)) }

// latencyProbe measures the time from the beginning of a push to the beginning of its handler, on a
// server at default settings that has nothing else to do.
func latencyProbe(name string, samples int, open opener, pause func(i int) time.Duration) *probe {
	return &probe{name: "latency, " + name, measure: func(ctx context.Context, l *lab) (_ []reading, err error) {
		s, err := open(ctx, l)
		if err != nil {
			return nil, err
		}

		started := make(chan time.Time, 1)
		stop, err := s.serve(ctx, func([]byte) { started <- time.Now() })
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, stop()) }()

		var took []float64
		for i := range trials(samples, l.jobs) {
			time.Sleep(pause(i))
			d, err := pushToStart(ctx, s, newJob(i), started)
			if err != nil {
				return nil, err
			}
			took = append(took, float64(d)/float64(time.Millisecond))
		}

		return []reading{
			{system: name, setting: "p50", unit: millis, value: percentile(took, 50)},
			{system: name, setting: "p99", unit: millis, value: percentile(took, 99)},
		}, nil
	}}
}

func pushToStart(ctx context.Context, s system, j job, started <-chan time.Time) (time.Duration, error) {
	begin := time.Now()
	if err := s.push(ctx, j); err != nil {
		return 0, err
	}
	select {
	case at := <-started:
		return at.Sub(begin), nil
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	case <-time.After(drainedWithin):
		return 0, fmt.Errorf("%s was not handled within %v", j.id, drainedWithin)
	}
}
