package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/backends"
)

// newQueue returns a queue whose ids are paths. Retries come soon and never
// end, nor do recoveries, since an event in the morgue would break its path's chain.
func newQueue(name string) *skein.Queue[Event] {
	return skein.NewQueue(name, skein.QueueOptions[Event]{
		Shards:        24,
		BatchSize:     50,
		MaxRetries:    1_000_000,
		MaxRecoveries: 1_000_000,
		Backoff:       func(int) time.Duration { return 5 * time.Millisecond },
	})
}

// newQueueName returns a name that no earlier run had, so that a run does not meet the remaining
// jobs of an earlier one in a shared store.
func newQueueName() string { return "gitindex-" + rand.Text()[:8] }

// chunk is how many events one push carries.
const chunk = 500

// maxBacklog is the largest number of events that wait, so that a history of any length fits into
// memory.
const maxBacklog = 100_000

// replay pushes a repository's history and handles it, both at once.
type replay struct {
	repo   repository
	store  string
	queue  *skein.Queue[Event]
	lanes  int
	index  *index
	faults *faults
	tally  *tally
	// handle is the queue's handler: the index, with faults, counted.
	handle handler
	// nodes are the processes that run the handlers. If it is nil, this process runs them.
	nodes nodes
}

func newReplay(repo repository, o options) *replay {
	r := &replay{
		repo:   repo,
		store:  o.store,
		queue:  newQueue(newQueueName()),
		lanes:  o.lanes,
		index:  newIndex(),
		faults: newFaults(o.fail, o.panics, o.slow, o.seed),
		tally:  newTally(),
		nodes:  nodes{count: o.nodes, every: o.kill},
	}
	r.handle = r.tally.wrap(r.faults.wrap(r.index.handle))
	return r
}

// run returns when all events are handled and the server has drained. A context
// that ends stops the pushing; the error is then its cause.
func (r *replay) run(ctx context.Context) error {
	store, closeStore, err := backends.Open(ctx, r.store)
	if err != nil {
		return err
	}
	serve := skein.NewServer(store, skein.ServerOptions{Lanes: r.lanes}, r.queue.Handler(r.handle)).Run
	if r.nodes.count > 0 {
		serve = r.serveNodes
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- serve(ctx)
	}()
	err = r.push(ctx, skein.NewClient(store, skein.ClientOptions{}))
	if err == nil {
		err = r.tally.await(ctx, 0)
	}
	cancel()
	if serveErr := <-served; serveErr != nil {
		return fmt.Errorf("serve: %w", serveErr)
	}
	if closeErr := closeStore(); err == nil {
		err = closeErr
	}
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// serveNodes lets other processes handle.
func (r *replay) serveNodes(ctx context.Context) error {
	r.nodes.settings = settings{Store: r.store, Queue: r.queue.Name(), Lanes: r.lanes}
	r.nodes.handle, r.nodes.stderr = r.handle, os.Stderr
	return r.nodes.run(ctx)
}

// push streams the history into the queue.
func (r *replay) push(ctx context.Context, client *skein.Client) error {
	entries := make([]skein.Entry[Event], 0, chunk)
	var position, commits int64
	flush := func() error {
		if err := r.tally.await(ctx, maxBacklog); err != nil {
			return err
		}
		r.tally.pushing(len(entries), commits)
		err := r.pushChunk(ctx, client, entries)
		entries = entries[:0]
		return err
	}
	err := r.repo.log(ctx, func(c change, seen int64) error {
		position++
		commits = seen
		id, event := newEvent(position, c)
		entries = append(entries, skein.Entry[Event]{
			ID:      id,
			Payload: event,
			Options: []skein.PushOption{skein.Score(float64(position))},
		})
		if len(entries) < chunk {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	commits = r.repo.commits
	return flush()
}

// pushPatience is how long pushes are repeated that are not known to be stored.
const pushPatience = time.Minute

// pushChunk pushes until the store has the chunk: it repeats events that are not known to be
// stored. An event that was stored after all is merged, or handled again, which the index notices.
func (r *replay) pushChunk(ctx context.Context, client *skein.Client, entries []skein.Entry[Event]) error {
	for try, since := 1, time.Now(); ; try++ {
		err := r.queue.PushMany(ctx, client, entries)
		var partly *skein.PushError
		if errors.As(err, &partly) && len(partly.Entries) < len(entries) {
			entries = named(entries, partly.Entries)
			try, since = 1, time.Now()
		}
		if err == nil || refused(err) || time.Since(since) >= pushPatience {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(time.Second, time.Duration(try*try)*5*time.Millisecond)):
		}
	}
}

// named returns the entries at some positions.
func named(entries []skein.Entry[Event], positions []int) []skein.Entry[Event] {
	some := make([]skein.Entry[Event], len(positions))
	for i, at := range positions {
		some[i] = entries[at]
	}
	return some
}

// refused reports whether the store has refused a push, so that a repeated push can't succeed.
func refused(err error) bool {
	for _, final := range []error{skein.ErrInvalidQueue, skein.ErrInvalidID, skein.ErrInvalidPayload, skein.ErrShardCountMismatch} {
		if errors.Is(err, final) {
			return true
		}
	}
	return false
}
