package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/internal/backends"
)

const (
	// chunk is the number of events in one push.
	chunk = 500
	// maxBacklog is the largest number of waiting events, so that a history of any length fits into
	// memory.
	maxBacklog = 100_000
	// patience is how long pushes with an unknown outcome are repeated, and how long the replay
	// waits for the next handled event.
	patience = time.Minute
)

// replay pushes the history of a repository and handles it, both at once.
type replay struct {
	repo   repository
	index  *index
	pushed atomic.Int64
}

// run returns when all events are handled and the server has drained, or when ctx has ended.
func (r *replay) run(ctx context.Context, url string, lanes int) error {
	store, closeStore, err := backends.Open(ctx, url)
	if err != nil {
		return err
	}

	queue := newQueue()
	server := skein.NewServer(store, skein.ServerOptions{Lanes: lanes}, queue.Handler(r.index.handle))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served := make(chan error, 1)
	go func() {
		defer cancel()
		served <- server.Run(ctx)
	}()

	err = r.push(ctx, queue, skein.NewClient(store, skein.ClientOptions{}))
	if err == nil {
		err = r.await(ctx, 0)
	}

	cancel()
	return errors.Join(err, <-served, closeStore())
}

// push streams the history into the queue.
func (r *replay) push(ctx context.Context, queue *skein.Queue[Event], client *skein.Client) error {
	entries := make([]skein.Entry[Event], 0, chunk)
	flush := func() error {
		if err := r.await(ctx, maxBacklog); err != nil {
			return err
		}
		r.pushed.Add(int64(len(entries)))
		err := pushUntilStored(ctx, queue, client, entries)
		entries = entries[:0]
		return err
	}

	err := r.repo.log(ctx, func(path string, e Event) error {
		score := skein.Score(float64(e.Position))
		entries = append(entries, skein.Entry[Event]{ID: pathID(path), Payload: e, Options: []skein.PushOption{score}})
		if len(entries) < chunk {
			return nil
		}
		return flush()
	})
	if err != nil {
		return err
	}
	return flush()
}

// pushUntilStored repeats events that are not known to be stored. An event that was stored after
// all is merged, or handled again, which the index skips.
func pushUntilStored(ctx context.Context, q *skein.Queue[Event], c *skein.Client, entries []skein.Entry[Event]) error {
	for deadline := time.Now().Add(patience); ; {
		err := q.PushMany(ctx, c, entries)
		if err == nil || ctx.Err() != nil || time.Now().After(deadline) {
			return err
		}

		var partly *skein.PushError
		if errors.As(err, &partly) {
			var remaining []skein.Entry[Event]
			for _, at := range partly.Entries {
				remaining = append(remaining, entries[at])
			}
			entries = remaining
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// await waits until at most backlog of the pushed events are not handled. It returns an error if no
// event was handled for a minute.
func (r *replay) await(ctx context.Context, backlog int64) error {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()

	moved, last := time.Now(), int64(-1)
	for {
		handled, pushed := r.index.handled(), r.pushed.Load()
		if pushed-handled <= backlog {
			return nil
		}

		if handled != last {
			moved, last = time.Now(), handled
		} else if time.Since(moved) > patience {
			return fmt.Errorf("no event was handled for %v, and %d wait", patience, pushed-handled)
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-poll.C:
		}
	}
}

// check compares the index with the files of HEAD.
func (r *replay) check(ctx context.Context, stdout io.Writer) error {
	files, err := r.repo.files(ctx)
	if err != nil {
		return err
	}
	if err := r.index.compare(files); err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "index equals git ls-tree -r HEAD: %d paths\n", len(files))
	return err
}
