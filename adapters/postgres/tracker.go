package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Track implements [ports.Tracker].
func (s *Store) Track(ctx context.Context, r ports.TrackRequest) (changed bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}

	var st status
	// A repeat would report that nothing has changed.
	err = s.queryOne(ctx, ifRolledBack|operated, []any{&st, &changed},
		`SELECT status, changed FROM {schema}.track(p_queue => $1, p_id => $2, p_untrack => $3, p_now => $4)`,
		textOrNone(r.Queue), r.ID, r.Untrack, s.now())
	switch {
	case err != nil:
		return false, err
	case st == statusFull:
		return false, storekit.TooManyTracked(r.Queue)
	}
	return changed, st.err(core.Shard{Queue: r.Queue})
}

// trackedSQL lists the tracked ids of a queue, and at least one row if the queue is known.
//
//	$1 the queue
const trackedSQL = `
SELECT coalesce(t.id, ''), coalesce(t.since, 0) FROM {schema}.queues q LEFT JOIN {schema}.tracked t ON t.queue = q.id
WHERE q.name = $1 COLLATE "C" ORDER BY t.id`

// Tracked implements [ports.Tracker].
func (s *Store) Tracked(ctx context.Context, queue string) ([]ports.TrackedID, error) {
	var all []ports.TrackedID
	known := false
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		all, known = nil, false
		var one ports.TrackedID
		return eachRow(rows, func() error {
			if err := rows.Scan(&one.ID, &one.Since); err != nil {
				return err
			}
			if known = true; one.ID != "" {
				all = append(all, one)
			}
			return nil
		})
	}, trackedSQL, textOrNone(queue))

	if err == nil && !known {
		err = storekit.UnknownQueue(queue)
	}
	return all, err
}
