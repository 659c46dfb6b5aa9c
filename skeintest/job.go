package skeintest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Job is a job to run, or a job to compare with. In a comparison, the zero value of a field after
// Payloads matches anything.
type Job[P any] struct {
	// ID is the id of the job.
	ID string
	// Payloads are the payloads, in order.
	Payloads []P
	// Scores are the scores of the Payloads, one for each. If Scores is nil, [Run] uses default
	// scores, and a comparison ignores scores.
	Scores []float64
	// In is the time from the store's now until the job may run. Run ignores it.
	In time.Duration
	// Retries is the number of failures of the job, and LastError the text of the last one.
	Retries   int
	LastError string
	// Failures are the last failures of the job for Run, the newest first. If it is empty, Run uses
	// LastError. A comparison ignores it.
	Failures []skein.Failure
	// Tags are the tags of the job, in any order.
	Tags []string
}

// Run runs a handler once on a job of its queue, in a store of its own, and returns the execution.
// The At of the event is 0. So Next is the delay of a requeued job: the time of a Snooze, or the
// wait before the next retry. Run fails the test at once if the job has no payloads or a different
// number of scores, if the job or the queue is invalid, or if the handler is not one of the queue.
func Run[P any](t TB, q *skein.Queue[P], h skein.Handler, job Job[P]) Event {
	t.Helper()

	s := New()
	if err := enter(t.Context(), s, q, job); err != nil {
		t.Fatalf("run: %v", err)
		return Event{}
	}

	events, err := s.drain(t, s.Now(), 1, []skein.Handler{h})
	if err != nil && !errors.Is(err, errLimit) {
		t.Fatalf("run: %v", err)
		return Event{}
	}

	if len(events) == 0 {
		t.Fatalf("run: the handler is not one of queue %q", q.Name())
		return Event{}
	}

	return events[0]
}

// enter puts a job into a store, in the state that it has after the given number of failures.
func enter[P any](ctx context.Context, s *Store, q *skein.Queue[P], job Job[P]) error {
	entries, err := job.entries()
	if err != nil {
		return err
	}
	if err := q.PushMany(ctx, s.Client, entries); err != nil {
		return err
	}
	failures := job.failures()
	if job.Retries == 0 && len(failures) == 0 {
		return nil
	}
	back := core.PutBack{SameTime: true, RetryCount: job.Retries - 1, Failures: failures}
	return putBack(ctx, s, q.Name(), job.ID, back)
}

// failures returns the job's failures as a store keeps them.
func (j *Job[P]) failures() core.Failures {
	if len(j.Failures) == 0 {
		return core.Failures{{Text: j.LastError}}.Stored()
	}

	var list core.Failures
	for _, f := range j.Failures {
		list = append(list, core.Failure{At: instantOf(f.At), Node: f.On, Text: f.Text})
	}
	return list.Stored()
}

// instantOf returns a time as an instant, and 0 for the zero time.
func instantOf(at time.Time) core.Instant {
	if at.IsZero() {
		return 0
	}
	return core.InstantOf(at)
}

// entries returns the job's pushes.
func (j *Job[P]) entries() ([]skein.Entry[P], error) {
	if j.Scores != nil && len(j.Scores) != len(j.Payloads) {
		return nil, fmt.Errorf("job %q has %d payloads and %d scores", j.ID, len(j.Payloads), len(j.Scores))
	}
	if len(j.Payloads) == 0 {
		return nil, fmt.Errorf("job %q has no payloads", j.ID)
	}

	entries := make([]skein.Entry[P], len(j.Payloads))
	for i, p := range j.Payloads {
		entries[i] = skein.Entry[P]{ID: j.ID, Payload: p}
		if j.Scores != nil {
			entries[i].Options = append(entries[i].Options, skein.Score(j.Scores[i]))
		}
	}

	entries[0].Options = append(entries[0].Options, skein.Tags(j.Tags...))
	return entries, nil
}

// putBack claims the only job of a store and puts it back.
func putBack(ctx context.Context, s *Store, queue, id string, back core.PutBack) error {
	queues, err := s.Queues(ctx)
	if err != nil {
		return err
	}
	at, err := s.Find(ctx, ports.FindRequest{Queue: queue, ID: id})
	if err != nil {
		return err
	}

	const owner = "skeintest"
	lease, err := s.Acquire(ctx, ports.AcquireRequest{
		Shard: at.Shard, Shards: queues[0].Shards, Generation: queues[0].Generation,
		Owner: owner, Attempt: 1, TTL: leaseTTL,
	})
	if err != nil {
		return err
	}

	turn := ports.TurnRequest{
		Lease:  ports.Lease{Shard: at.Shard, Owner: owner, Token: lease.Token},
		Number: 1, TTL: leaseTTL, Want: 1,
	}
	claimed, err := s.Turn(ctx, turn)
	if err != nil {
		return err
	}

	turn.Number, turn.Want = 2, 0
	for _, c := range claimed.Claims {
		turn.Settlements = append(turn.Settlements, core.Settlement{
			ID:      id,
			Receipt: c.Receipt,
			Rest:    core.Requeue,
			PutBack: back,
		})
	}

	if _, err := s.Turn(ctx, turn); err != nil {
		return err
	}
	return s.Release(ctx, turn.Lease)
}
