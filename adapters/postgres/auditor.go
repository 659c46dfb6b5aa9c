package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// actionsSQL lists the actions of operators, the newest first.
//
//	$1 the time that they are before, or 0 for the newest, $2 how many
const actionsSQL = `
SELECT id, at, action::text FROM {schema}.actions WHERE $1::bigint = 0 OR at < $1::bigint ORDER BY at DESC LIMIT $2`

// Audit implements [ports.Auditor].
func (s *Store) Audit(ctx context.Context, a ports.Action) error {
	if err := a.Validate(); err != nil {
		return err
	}
	text, err := storekit.EncodeAction(&a)
	if err != nil {
		return err
	}
	return s.query(ctx, idempotent|operated, noRows,
		`SELECT {schema}.audit(p_now => $1, p_id => $2, p_action => $3)`, s.now(), a.ID, text)
}

// Actions implements [ports.Auditor].
func (s *Store) Actions(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
	var page []ports.Action
	err := s.query(ctx, idempotent, func(rows pgx.Rows) error {
		page = nil
		var id, text string
		var at core.Instant
		return eachRow(rows, func() error {
			if err := rows.Scan(&id, &at, &text); err != nil {
				return err
			}
			if a, err := storekit.DecodeAction(id, at, text); err == nil {
				page = append(page, a)
			}
			return nil
		})
	}, actionsSQL, int64(r.Before), r.Size())
	return page, err
}
