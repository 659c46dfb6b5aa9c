package shop

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/skeinq/skein"
)

// customers pushes events for each queue at a rate of its own, until ctx ends.
func (s *Shop) customers(ctx context.Context) error {
	client := skein.NewClient(s.store, skein.ClientOptions{})
	q := s.queues
	group, ctx := errgroup.WithContext(ctx)

	for seed, one := range []struct {
		queue *skein.Queue[event]
		every time.Duration
		what  string
		id    func(*past) string
	}{
		{q.orders, 600 * time.Millisecond, "bought", (*past).order},
		{q.orders, time.Second, "bought", func(*past) string { return hotOrder }},
		{q.emails, 2 * time.Second, "order shipped", (*past).customer},
		{q.search, 300 * time.Millisecond, "changed", (*past).product},
		{q.thumbnails, 500 * time.Millisecond, "uploaded", func(p *past) string {
			return fmt.Sprintf("image-0-%d", p.number)
		}},
		{q.exports, 40 * time.Second, "asked for", func(p *past) string {
			return fmt.Sprintf("export-today-%d", p.number)
		}},
		{q.invoices, 30 * time.Second, "to be sent", func(p *past) string {
			return fmt.Sprintf("invoice-today-%d", p.number)
		}},
		{q.reports, 50 * time.Second, "asked for", func(p *past) string {
			return fmt.Sprintf("report-today-%d", p.number)
		}},
	} {
		p := &past{dice: dice(uint64(seed) + 2), number: 1_000_000}
		group.Go(func() error {
			tick := time.NewTicker(one.every)
			defer tick.Stop()
			for {
				select {
				case <-ctx.Done():
					return nil
				case <-tick.C:
				}

				e := p.event(one.what)
				if err := one.queue.Push(ctx, client, one.id(p), e); err != nil && ctx.Err() == nil {
					return err
				}
			}
		})
	}

	return group.Wait()
}
