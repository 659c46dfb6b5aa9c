package skeintest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/ports/storekit"
)

// leaseTTL is longer than any test, so that no lease runs out at a breakpoint.
const leaseTTL = 24 * time.Hour

// Drain runs the jobs that are due now. Then it moves the clock to the next job or tick of a
// schedule that becomes due within d and runs that, until there is none. At the end the clock is d
// later than at the start, or even later if a handler has advanced it. Drain returns the executions
// in order, after the calls of OnBuried have returned. Retries, snoozes and jobs that handlers push
// to each other's queues run in the same Drain.
//
// The Rate of a queue holds by the store's clock: a job that may not start yet runs when the clock has
// reached its start, if that is within d.
//
// Handlers run one at a time in the caller's goroutine, so they may end the test. Jobs that are due
// at the same time run shard by shard. The jitter is 0, unless the Server's options have a Jitter.
// So with the default backoff, retry n comes n^4 + 15 seconds after the failure; the first retry is
// number 0.
//
// Drain fails the test at once for invalid options, for an error of the store, if the context of
// the test has ended, and when MaxJobs jobs have run.
func (s *Store) Drain(t TB, d time.Duration, handlers ...skein.Handler) Events {
	t.Helper()
	events, err := s.drain(t, s.Now().Add(d), cmp.Or(s.MaxJobs, DefaultMaxJobs), handlers)
	if err != nil {
		t.Fatalf("drain: %v", err)
	}
	return events
}

// DrainUntil is [Store.Drain] up to a time of the store's clock, for example the end of a day on
// which a time zone changes its clock. A job or a tick of exactly that time still runs.
func (s *Store) DrainUntil(t TB, until time.Time, handlers ...skein.Handler) Events {
	t.Helper()
	return s.Drain(t, until.Sub(s.Now()), handlers...)
}

// errLimit is the error of a drain that has reached its limit.
var errLimit = errors.New("its limit of jobs was reached")

// drain runs jobs until a time of the clock, or until it has run the given number.
func (s *Store) drain(t TB, until time.Time, limit int, handlers []skein.Handler) (Events, error) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	r := newRecorder(s, limit, stop)
	server := skein.NewServer(storekit.Intercept(s, r.intercept), s.options(t, r), handlers...)

	for idle := 0; ; {
		jobs, err := server.RunDue(ctx)
		crashed := r.crashed
		r.crashed = false
		switch {
		case err != nil && !crashed:
			return r.settledEvents(), err
		case len(r.events) >= limit:
			return r.settledEvents(), circling(r.events, limit)
		case ctx.Err() != nil:
			return r.settledEvents(), ctx.Err()
		case crashed:
			continue // the next RunDue recovers the jobs
		}

		next, err := r.nextDue(ctx)
		if err != nil {
			return r.settledEvents(), err
		}

		if !next.OK || next.Due.Time().After(until) {
			s.clock.Pass(until)
			return r.settledEvents(), nil
		}

		if idle++; jobs > 0 || next.Due.Time().After(s.Now()) {
			idle = 0
		}
		if idle > 1 {
			return r.events, errors.New("the store does not return a job that is due")
		}

		s.clock.Pass(next.Due.Time())
	}
}

// options returns the Server's options, with those that Drain sets itself.
func (s *Store) options(t TB, r *recorder) skein.ServerOptions {
	o := s.Server
	o.Lanes, o.Prefetch, o.LeaseTTL = 1, skein.NoPrefetch, leaseTTL
	o.Splitter, o.Scheduler = nil, nil
	o.Observer = r

	if o.Jitter == nil {
		o.Jitter = func() int { return 0 }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(t.Output(), nil))
	}

	if start := s.Server.OnStart; start != nil {
		var once sync.Once
		o.OnStart = func(ctx context.Context) (err error) {
			once.Do(func() { err = start(ctx) })
			return err
		}
	}

	return o
}

// circling returns the error of a drain that has reached its limit, with the jobs that ran last.
func circling(events Events, limit int) error {
	const shown = 5
	last := events[max(0, len(events)-shown):]
	return fmt.Errorf("%w: %d jobs ran; does a handler snooze, fail or push without a delay for ever? "+
		"If the test does end, raise MaxJobs. The last jobs:\n%v", errLimit, limit, last)
}
