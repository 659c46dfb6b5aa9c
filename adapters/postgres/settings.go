package postgres

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// storedSettings are the settings of a queue as its row has them.
type storedSettings struct {
	version int64
	text    *string
}

// settingsOf reads the settings of a queue. It logs settings that can't be read, unless it has logged
// this text of them before.
func (s *Store) settingsOf(queue string, stored storedSettings) core.Settings {
	text := ""
	if stored.text != nil {
		text = *stored.text
	}

	settings, err := storekit.DecodeSettings(stored.version, text)
	if err == nil {
		return settings
	}
	if before, logged := s.unreadSettings.Swap(queue, text); !logged || before != text {
		storekit.LogUnread(s.logger(), queue, text, err)
	}
	return settings
}

// Configure implements [ports.Operator].
func (s *Store) Configure(ctx context.Context, r ports.ConfigureRequest) error {
	if err := r.Validate(); err != nil {
		return err
	}
	text, err := storekit.EncodeSettings(r.Settings)
	if err != nil {
		return err
	}

	var st status
	var version *int64
	var present storedSettings
	err = s.queryOne(ctx, idempotent|operated, []any{&st, &version, &present.text},
		`SELECT status, version, settings FROM {schema}.configure($1, $2, $3)`,
		textOrNone(r.Queue), r.Settings.Version, text)
	if err != nil {
		return err
	}

	if st == statusConflict {
		present.version = *version
		return &ports.SettingsConflictError{Queue: r.Queue, Settings: s.settingsOf(r.Queue, present)}
	}
	return st.err(core.Shard{Queue: r.Queue})
}
