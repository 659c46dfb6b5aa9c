// Package stored reads a store, for the metrics of the table whose source is the store.
package stored

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

const (
	// restFactor is the length of the rest after a look, as a multiple of the look's duration. So the
	// store spends at most a hundredth of its time on looks.
	restFactor = 99
	minRest    = 5 * time.Second
	// maxFailedRest bounds the rest after a look that failed, which may have cost the store nothing.
	maxFailedRest  = time.Minute
	defaultTimeout = 5 * time.Second
)

// Store has the values of a store's metrics. It reads the store, unless the last read was a short
// while ago: after a read it leaves the store alone for 99 times as long as the read took, at least
// 5 s, and after a failed read at most 1 minute. Meanwhile, and if a read fails, the values are
// those of the last successful read. Make it with [New]. It is safe for concurrent use.
type Store struct {
	inspector *inspect.Inspector
	timeout   time.Duration

	// looking is held by the caller that reads the store. mu guards the fields below it.
	looking sync.Mutex
	mu      sync.Mutex
	last    *view
	up      bool
	took    time.Duration
	next    time.Time
}

// view is the result of one look.
type view struct {
	at     time.Time
	stats  []inspect.QueueStats
	nodes  []inspect.Node
	checks []inspect.Check
	// late are the ticks of the queues with schedules.
	late map[string]inspect.LateTick
	// waits are the waits of the queues with a rate.
	waits map[string]inspect.RateWait
}

// New returns a Store that has not read the store yet. timeout limits a read; 0 means 5 s. New
// returns core.ErrInvalidOptions without an inspector, or for a timeout below 0.
func New(inspector *inspect.Inspector, timeout time.Duration) (*Store, error) {
	switch {
	case inspector == nil:
		return nil, fmt.Errorf("%w: no inspector; make one with inspect.New", core.ErrInvalidOptions)
	case timeout < 0:
		return nil, fmt.Errorf("%w: Timeout %v is below 0", core.ErrInvalidOptions, timeout)
	case timeout == 0:
		timeout = defaultTimeout
	}
	return &Store{inspector: inspector, timeout: timeout}, nil
}

// Each reads the store if a read is due, and calls put for each value, with the name of a metric of
// the table and the values of its labels, in their order.
func (s *Store) Each(put func(name string, v float64, labels ...string)) {
	s.refresh()

	s.mu.Lock()
	last, up, took := s.last, s.up, s.took
	s.mu.Unlock()

	all := sink(put)
	all.bool("skein_exporter_up", up)
	put("skein_exporter_look_seconds", took.Seconds())
	if last == nil {
		return
	}

	put("skein_exporter_age_seconds", time.Since(last.at).Seconds())
	all.queues(last)
	all.servers(last)
	all.checks(last.checks)
	all.schedules(last.late)
	all.rates(last.waits)
}

// refresh reads the store if a read is due. If another caller is reading it, refresh returns at
// once, or waits for that read if there is no previous result.
func (s *Store) refresh() {
	if !s.due() {
		return
	}

	if !s.looking.TryLock() {
		if s.known() {
			return
		}
		s.looking.Lock()
	}
	defer s.looking.Unlock()

	// Another caller may have read the store in the meantime.
	if !s.due() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), s.timeout)
	defer cancel()

	start := time.Now()
	found, err := s.look(ctx)
	took := time.Since(start)
	rest := max(minRest, restFactor*took)
	if err != nil {
		rest = min(rest, maxFailedRest)
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	s.up, s.took, s.next = err == nil, took, start.Add(took+rest)
	if err == nil {
		found.at = start
		s.last = found
	}
}

func (s *Store) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !time.Now().Before(s.next)
}

func (s *Store) known() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last != nil
}

// look reads the store. It leaves out the shards of a part that can't be reached. If the checks
// can't be made, the result has one check, answers, with the status unknown. If the ticks of
// schedules can't be read, it has none, and the same holds for the waits of rates.
func (s *Store) look(ctx context.Context) (*view, error) {
	stats, err := s.inspector.Stats(ctx)
	var partial *inspect.PartialError
	if err != nil && !errors.As(err, &partial) {
		return nil, err
	}

	nodes, err := s.inspector.Nodes(ctx)
	if err != nil {
		return nil, err
	}

	checks, err := s.inspector.Checks(ctx)
	if err != nil {
		checks = []inspect.Check{{Name: "answers", Status: inspect.CheckUnknown, Value: err.Error()}}
	}
	late, err := s.inspector.LateTicks(ctx)
	if err != nil && !errors.As(err, &partial) {
		late = nil
	}

	waits, err := s.inspector.RateWaits(ctx, nodes)
	if err != nil {
		waits = nil
	}

	return &view{stats: stats, nodes: nodes, checks: checks, late: late, waits: waits}, nil
}
