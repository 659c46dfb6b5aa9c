package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Settle implements ports.Settler in a transaction of its own. It is not repeated
// after a lost connection: it may have been carried out.
func (s *Store) Settle(ctx context.Context, shard core.Shard, settle []core.Settlement) error {
	text, err := settlementsJSON(settle)
	if err != nil {
		return err
	}
	var (
		st    status
		found int
	)
	err = s.query(ctx, ifRefused, func(rows pgx.Rows) error {
		return readOne(rows, &st, &found)
	}, settleTxSQL, shard.Queue, int(index(shard)), s.now(), text)
	switch {
	case err != nil:
		return err
	case st != accepted:
		return st.err(shard)
	case found != len(settle):
		return fmt.Errorf("%w: %d of %d jobs of %v are claimed as they were", ports.ErrLeaseLost, found, len(settle), shard)
	}
	s.wake(shard, regardless) // ids are free, and some may be back
	return nil
}
