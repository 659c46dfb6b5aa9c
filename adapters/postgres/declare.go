package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/ports"
)

// Declare implements ports.Producer.
func (s *Store) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	var (
		reply    ports.DeclareReply
		shards   int
		indexIDs bool
	)
	err := s.query(ctx, always, func(rows pgx.Rows) error {
		return readOne(rows, &shards, &reply.Generation, &indexIDs)
	}, `SELECT shards, generation, index_ids FROM {schema}.declare($1, $2, $3)`, r.Queue, int32(r.Shards), r.IndexIDs)
	switch {
	case err != nil:
		return ports.DeclareReply{}, err
	case shards != r.Shards:
		return ports.DeclareReply{}, fmt.Errorf("%w: %q has %d shards, not %d; its count is permanent",
			ports.ErrShardCountMismatch, r.Queue, shards, r.Shards)
	case indexIDs != r.IndexIDs:
		return ports.DeclareReply{}, fmt.Errorf("%w: %q has IndexIDs %t, which is permanent",
			ports.ErrQueueMismatch, r.Queue, indexIDs)
	}
	return reply, nil
}
