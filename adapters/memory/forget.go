package memory

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Forget implements ports.Operator. It is atomic for the queue.
func (s *Store) Forget(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("forget %q: %w", name, err)
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	q := s.b.queues[name]
	if q == nil {
		return storekit.UnknownQueue(name)
	}
	q.use.Lock()
	defer q.use.Unlock()
	for _, vacant := range []func(*shard) error{(*shard).empty, s.b.free} {
		for _, sh := range q.shards {
			if err := vacant(sh); err != nil {
				return err
			}
		}
	}
	q.forgotten = true
	delete(s.b.queues, name)
	for _, sh := range q.shards {
		sh.endSubscriptions()
	}
	return nil
}

// empty returns ErrNotEmpty if the shard holds anything.
func (s *shard) empty() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.counts(); c.Fresh+c.Retrying+c.Claimed+c.Dead > 0 {
		return storekit.NotEmpty(s.id)
	}
	return nil
}

// free returns a *HeldError if the shard is leased.
func (b *backend) free(s *shard) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := b.now()
	if !s.lease.lasts(now) {
		return nil
	}
	return &ports.HeldError{Shard: s.id, Owner: s.lease.owner, Remaining: s.lease.remaining(now)}
}

// Recount implements ports.Operator. What Stats says is counted from the lists
// themselves, so that there is nothing to correct.
func (s *Store) Recount(ctx context.Context, id core.Shard) (ports.RecountReply, error) {
	sh, err := s.b.shard(ctx, id)
	if err != nil {
		return ports.RecountReply{}, err
	}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	counts := sh.counts()
	return ports.RecountReply{Before: counts, After: counts}, nil
}
