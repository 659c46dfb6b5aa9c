// Package stored looks at what a store holds, for the metrics of the table that come from it.
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
	// restFactor is how many times as long as a look took the store is left alone: it spends a
	// hundredth of its time on looks.
	restFactor = 99
	minRest    = 5 * time.Second
	// maxFailedRest bounds the rest after a look that failed, which may have cost the store nothing.
	maxFailedRest  = time.Minute
	defaultTimeout = 5 * time.Second
)

// Store has the values of a store's metrics. It reads the store unless it has done so a short
// while ago: after a read it leaves the store alone for 99 times as long as that took, and for at
// least 5 s. Meanwhile, and when a read fails, values are those of the last one that succeeded.
// Make it with [New]. It is safe for concurrent use.
type Store struct {
	inspector *inspect.Inspector
	timeout   time.Duration

	// looking is held by the caller that looks at the store; mu guards the rest.
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
}

// New returns a Store that has not read the store yet. timeout bounds a read; 0 is 5 s. Its error
// wraps core.ErrInvalidOptions: no inspector, or a timeout below 0.
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

// Each calls put for each value, after a read of the store if one is due, with the name of a
// metric of the table and the values of its labels, in their order.
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
}

// refresh looks at the store if it may be looked at. A caller that comes while another looks gets
// the previous result, or waits if there is none.
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

// look asks the store. If a part of it can't be reached, its shards are left out. If checks can't
// be made, the result has a single unknown check.
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
	return &view{stats: stats, nodes: nodes, checks: checks}, nil
}
