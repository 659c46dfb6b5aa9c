package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// errInjected is the failure that -fail injects.
var errInjected = errors.New("injected failure")

// slowness is the time for which a slow call sleeps.
const slowness = 20 * time.Millisecond

// faults makes handlers fail, panic and sleep, each in a given share of the calls.
type faults struct {
	fail, panics, slow float64

	mu     sync.Mutex
	random *rand.Rand
	count  faultCount
}

// faultCount counts the faults that handlers met.
type faultCount struct {
	failed, panicked, slowed int64
}

// newFaults draws from the seed. The same seed gives the same draws; which call
// gets which depends on the order of the lanes.
func newFaults(fail, panics, slow float64, seed uint64) *faults {
	return &faults{fail: fail, panics: panics, slow: slow, random: rand.New(rand.NewPCG(seed, 2))}
}

// wrap returns next with faults. A call that fails or panics does so after next has handled no
// event, some or all events, as a crash would. A slow call sleeps first. If its context ends
// meanwhile, it fails and handles nothing.
func (f *faults) wrap(next handler) handler {
	return func(ctx context.Context, id string, events []Event) error {
		outcome := f.draw(len(events))
		if outcome.slow {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(slowness):
			}
		}
		if err := next(ctx, id, events[:outcome.done]); err != nil {
			return err
		}
		if outcome.panics {
			panic(fmt.Sprintf("injected panic after %d of %d events", outcome.done, len(events)))
		}
		if outcome.fails {
			return fmt.Errorf("%w after %d of %d events", errInjected, outcome.done, len(events))
		}
		return nil
	}
}

// callOutcome is the outcome of one call.
type callOutcome struct {
	slow, panics, fails bool
	// done is how many events are handled first.
	done int
}

func (f *faults) draw(events int) callOutcome {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := callOutcome{done: events}
	if f.random.Float64() < f.slow {
		d.slow = true
		f.count.slowed++
	}
	switch n := f.random.Float64(); {
	case n < f.panics:
		d.panics = true
		f.count.panicked++
	case n < f.panics+f.fail:
		d.fails = true
		f.count.failed++
	default:
		return d
	}
	d.done = f.random.IntN(events + 1)
	return d
}

// counted returns the counts so far.
func (f *faults) counted() faultCount {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.count
}
