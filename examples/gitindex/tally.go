package main

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// tally counts pushed events and their outcomes. It may be used by many goroutines at once; only
// one at a time may call await.
type tally struct {
	// done has room for one element, which means that a job was done since done was last read.
	done chan struct{}

	mu     sync.Mutex
	counts counts
	ids    map[string]*idState
}

// counts are the figures of a run.
type counts struct {
	commits, pushed int64
	// handled are the events of the jobs that are done.
	handled int64
	// repeated are those of the done jobs that had been handled before: that handler's process died or
	// lost its lease before it could report it to the store.
	repeated int64
	// calls is the number of calls of the handler, jobs the number of those that succeeded, and
	// retries the number of those after a failed call for the same id.
	calls, jobs, retries int64
	// overlaps is the number of calls that began while another call for their id ran.
	overlaps int64
}

// idState is the state of the calls for one id.
type idState struct {
	running int
	failed  bool
	// settled is the last position that a successful call has had.
	settled int64
}

func newTally() *tally {
	return &tally{done: make(chan struct{}, 1), ids: map[string]*idState{}}
}

// wrap returns next with each call counted, one that panics too.
func (t *tally) wrap(next handler) handler {
	return func(ctx context.Context, id string, events []Event) error {
		state := t.begin(id)
		ok := false
		defer func() { t.end(state, events, ok) }()
		err := next(ctx, id, events)
		ok = err == nil
		return err
	}
}

func (t *tally) begin(id string) *idState {
	t.mu.Lock()
	defer t.mu.Unlock()
	state := t.ids[id]
	if state == nil {
		state = &idState{}
		t.ids[id] = state
	}
	t.counts.calls++
	if state.failed {
		t.counts.retries++
	}
	if state.running > 0 {
		t.counts.overlaps++
	}
	state.running++
	return state
}

func (t *tally) end(state *idState, events []Event, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	state.running--
	state.failed = !ok
	if !ok {
		return
	}
	t.counts.jobs++
	for _, e := range events {
		if e.Position <= state.settled {
			t.counts.repeated++
			continue
		}
		state.settled = e.Position
		t.counts.handled++
	}
	select {
	case t.done <- struct{}{}:
	default:
	}
}

// pushing counts events that are about to be pushed, from a history with the given number of
// commits so far.
func (t *tally) pushing(events int, commits int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts.pushed += int64(events)
	t.counts.commits = commits
}

// snapshot returns the figures at this moment.
func (t *tally) snapshot() counts {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts
}

// stallChecks is the number of seconds after which a replay in which jobs wait and none is done
// fails.
const stallChecks = 60

// await waits until at most backlog of the pushed events are not handled. It
// returns the context's cause if that ends first, and an error if no job
// was done for stallChecks seconds.
func (t *tally) await(ctx context.Context, backlog int64) error {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	quiet, last := 0, int64(-1)
	for {
		c := t.snapshot()
		if c.pushed-c.handled <= backlog {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-t.done:
		case <-second.C:
			quiet++
			if c.jobs != last {
				quiet, last = 0, c.jobs
			}
			if quiet >= stallChecks {
				return fmt.Errorf("stalled: no job was done for %d s, and %d events wait", stallChecks, c.pushed-c.handled)
			}
		}
	}
}
