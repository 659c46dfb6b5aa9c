// Package shop is a shop for demonstrations: a memory store with a day of history, three servers
// and customers. It is for users who want to see Skein before they have jobs of their own. It has
// one problem of each kind on purpose, the same at each start.
package shop

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// Shop is the shop. Open makes it, and Run runs it. It is safe for concurrent use.
type Shop struct {
	store *memory.Store
	// behind is how far the store's clock is set back while the past is made.
	behind atomic.Int64
	log    *slog.Logger
	queues *queues
	edits  *edits
}

// Open returns a shop that has been open for a day. log receives the log of its servers; nil
// discards it.
func Open(ctx context.Context, log *slog.Logger) (*Shop, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	s := &Shop{log: log, queues: newQueues(), edits: newEdits()}
	s.store = memory.New(memory.Options{Clock: func() time.Time {
		return time.Now().Add(-time.Duration(s.behind.Load()))
	}})

	p := past{shop: s, dice: dice(1), client: skein.NewClient(s.store, skein.ClientOptions{})}
	if err := p.happen(ctx); err != nil {
		return nil, fmt.Errorf("make the shop's past: %w", err)
	}
	if err := s.queues.schedule(ctx, p.client); err != nil {
		return nil, fmt.Errorf("store the shop's schedules: %w", err)
	}
	return s, nil
}

// Store returns the shop's store. The returned store also shows problems that a memory store can't
// have; see shown.
func (s *Shop) Store() skein.Store { return s.view() }

// Run runs the servers and the customers until ctx ends. Then it waits for running jobs, for a
// second at most.
func (s *Shop) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, name := range []string{"worker-a", "worker-b", "worker-c"} {
		group.Go(func() error { return s.server(name).Run(ctx) })
	}
	group.Go(func() error { return s.customers(ctx) })
	group.Go(func() error { return s.crashes(ctx) })
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// leaseTTL is shorter than the default, so that the overview shows each problem within 5 s. All
// problems are in the store when the shop opens, except the jobs that block others: servers
// announce these after a third of the TTL, which is 2 s, and the dashboard reads the store every 2
// s.
const leaseTTL = 6 * time.Second

// server returns one of the shop's servers. The last one still has the previous version.
func (s *Shop) server(name string) *skein.Server {
	version := "v1.5.0"
	if name == "worker-c" {
		version = "v1.4.2"
	}
	return skein.NewServer(s.store, skein.ServerOptions{
		Name:            name,
		Version:         version,
		Lanes:           16,
		LeaseTTL:        leaseTTL,
		ShutdownTimeout: time.Second,
		Logger:          s.log.With("node", name),
	}, s.queues.handlers(true)...)
}
