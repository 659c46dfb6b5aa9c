package redis

import (
	"context"
	"strconv"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// Audit implements [ports.Auditor].
func (s *Store) Audit(ctx context.Context, a ports.Action) error {
	if err := a.Validate(); err != nil {
		return err
	}
	text, err := storekit.EncodeAction(&a)
	if err != nil {
		return err
	}
	_, err = s.run(ctx, exchange.Call{Script: auditScript, Keys: s.auditKeys(), Args: []any{s.now(), a.ID, text}})
	return err
}

// Actions implements [ports.Auditor].
func (s *Store) Actions(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
	before := ""
	if r.Before != 0 {
		before = strconv.FormatInt(int64(r.Before), 10)
	}

	value, err := s.run(ctx, exchange.Call{Script: actionsScript, Keys: s.auditKeys(), Args: []any{before, r.Size()}})
	if err != nil {
		return nil, err
	}

	var page []ports.Action
	list := record.ReplyOf(value)
	for list.More() {
		id, at, text := list.Text(), core.Instant(list.Parsed()), list.Text()
		if a, err := storekit.DecodeAction(id, at, text); err == nil {
			page = append(page, a)
		}
	}
	return page, list.Err()
}
