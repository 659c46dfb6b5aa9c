package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
)

// Common to all jobs: an id of its own, of 12 bytes, and one payload, which ends with the id.
const (
	idPrefix     = "job-"
	idDigits     = 8
	payloadBytes = 100
)

var filler = strings.Repeat("x", payloadBytes-len(idPrefix)-idDigits)

// job is a job before it is pushed.
type job struct {
	id      string
	payload []byte
}

func newJob(number int) job {
	id := fmt.Sprintf("%s%0*d", idPrefix, idDigits, number)
	return job{id: id, payload: []byte(filler + id)}
}

// newJobs returns jobs 0 to n-1.
func newJobs(n int) []job { return jobsFrom(0, n) }

// jobsFrom returns n jobs from a number on.
func jobsFrom(first, n int) []job {
	jobs := make([]job, n)
	for i := range jobs {
		jobs[i] = newJob(first + i)
	}
	return jobs
}

// newHotJobs returns n jobs that all belong to shard 0 of a queue of default size.
func newHotJobs(n int) []job {
	var jobs []job
	for number := 0; len(jobs) < n; number++ {
		if j := newJob(number); core.ShardOf(j.id, skein.DefaultShards) == 0 {
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// number returns the number of the job that has a payload.
func number(payload []byte) (int, error) {
	if len(payload) != payloadBytes {
		return 0, fmt.Errorf("a payload has %d bytes, not %d", len(payload), payloadBytes)
	}
	return strconv.Atoi(string(payload[payloadBytes-idDigits:]))
}

// tally checks that a handler gets each payload of some jobs exactly once.
type tally struct {
	base  int           // the lowest job
	seen  []atomic.Bool // from base on
	left  atomic.Int64
	first chan struct{} // closed when the first comes
	done  chan error    // gets nil when all have come, or the error
	began atomic.Bool
}

func newTally(jobs []job) *tally {
	byID := func(a, b job) int { return strings.Compare(a.id, b.id) }
	lowest, _ := number(slices.MinFunc(jobs, byID).payload)
	highest, _ := number(slices.MaxFunc(jobs, byID).payload)
	t := &tally{
		base:  lowest,
		seen:  make([]atomic.Bool, highest-lowest+1),
		first: make(chan struct{}),
		done:  make(chan error, 1),
	}
	t.left.Store(int64(len(jobs)))
	return t
}

// take counts a payload that a handler has got.
func (t *tally) take(payload []byte) {
	if !t.began.Load() && t.began.CompareAndSwap(false, true) {
		close(t.first)
	}

	n, err := number(payload)
	switch {
	case err != nil:
	case n < t.base || n-t.base >= len(t.seen):
		err = fmt.Errorf("job %d was handled, but not pushed", n)
	case t.seen[n-t.base].Swap(true):
		err = fmt.Errorf("job %d was handled twice", n)
	case t.left.Add(-1) > 0:
		return
	}

	select {
	case t.done <- err:
	default:
	}
}

// wait returns when all payloads have come.
func (t *tally) wait(ctx context.Context) error {
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
