// Package shop is a shop for demonstrations: a memory store with a day behind it, three servers
// and customers, for users who want to see Skein before they have jobs of their own. Its faults
// are on purpose, one of each kind, and are the same at each start.
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

// Shop is the shop. Make it with Open, and let it live with Run. It is safe for concurrent use.
type Shop struct {
	store *memory.Store
	// behind is by how much the store's clock is behind while the past is made.
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
	s.store = memory.New(memory.Options{Clock: func() time.Time { return time.Now().Add(-time.Duration(s.behind.Load())) }})
	p := past{shop: s, dice: dice(1), client: skein.NewClient(s.store, skein.ClientOptions{})}
	if err := p.happen(ctx); err != nil {
		return nil, fmt.Errorf("make the shop's past: %w", err)
	}
	return s, nil
}

// Store returns where the shop's jobs are, with what can be wrong with a store beside them.
func (s *Shop) Store() skein.Store { return s.view() }

// Run serves and buys until ctx ends, and then waits a second at most for what runs.
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

// leaseTTL is shorter than the default, so that the overview has each trouble within 5 s. All are
// in the store when the shop opens, but for the jobs that hold others up: servers announce these
// after a third of the TTL, which is 2 s, and the dashboard looks at the store every 2 s.
const leaseTTL = 6 * time.Second

// server returns one of the shop's servers. The last one has not been deployed yet.
func (s *Shop) server(name string) *skein.Server {
	version := "v1.5.0"
	if name == "worker-c" {
		version = "v1.4.2"
	}
	return skein.NewServer(s.store, skein.ServerOptions{
		Name: name, Version: version, Lanes: 16, LeaseTTL: leaseTTL, ShutdownTimeout: time.Second, Logger: s.log.With("node", name),
	}, s.queues.handlers(true)...)
}
