package postgres_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/ports"
)

// Settings that can't be read stop no call, are logged once, and are replaced by the next change of
// their version.
func TestPostgresBrokenSettingsAreReplaced(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	ctx := t.Context()
	configure := func(version int64) (core.Settings, error) {
		s := core.Settings{Version: version, Set: []core.Setting{{Name: core.SettingMaxLanes, Value: "1", By: "ann"}}}
		return s, w.store.Configure(ctx, ports.ConfigureRequest{Queue: "orders", Settings: s})
	}

	for i, damage := range []string{
		`settings = NULL`, `settings = '[]'`, `settings = '{}'`, `settings = '{"settings":[{"name":1}]}'`,
		`settings = '{"settings":[{"name":"b"},{"name":"a"}]}'`,
	} {
		var log strings.Builder
		w.store = postgres.New(w.pool, postgres.Options{
			Schema:    w.schema,
			NoWakeups: true,
			Logger:    slog.New(slog.NewTextHandler(&log, nil)),
		})
		version := int64(i + 1)
		_, err := configure(version)
		w.must(err)
		kit.Exec(t, w.pool, `UPDATE `+w.schema+`.queues SET `+damage)

		broken := core.Settings{Version: version, Broken: true}
		for range 3 {
			queues, err := w.store.Queues(ctx)
			if err != nil || !queues[0].Settings.Equal(broken) {
				t.Errorf("%s: %+v, %v", damage, queues, err)
			}
			stats, err := w.store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
			if err != nil || !stats[0].Queue.Settings.Equal(broken) {
				t.Errorf("%s: in Stats %+v, %v", damage, stats, err)
			}
			w.must(w.store.Pause(ctx, "orders"))
		}
		if n := strings.Count(log.String(), "settings of a queue can't be read"); n != 1 {
			t.Errorf("%s: the log has it %d times, want once:\n%s", damage, n, log.String())
		}

		rows, err := w.store.Check(ctx)
		w.must(err)
		at := slices.IndexFunc(rows, func(row ports.Check) bool { return row.Name == "records" })
		if row := rows[at]; row.Status != ports.CheckWarn || row.Refuses ||
			!strings.Contains(row.Value, "the settings of the queues orders can't be read") ||
			!strings.Contains(row.Advice, "set one of their settings again") {
			t.Errorf("%s: the row is %+v, want a warning of the settings", damage, row)
		}

		_, err = configure(version)
		conflict, ok := errors.AsType[*ports.SettingsConflictError](err)
		if !ok || !conflict.Settings.Equal(broken) {
			t.Errorf("%s: version %d again: %v, want a conflict", damage, version, err)
		}
	}
	s, err := configure(6)
	w.must(err)
	if queues, err := w.store.Queues(ctx); err != nil || !queues[0].Settings.Equal(s) {
		t.Errorf("after a change: %+v, %v", queues, err)
	}
}

// The table admits no version that can't be compared.
func TestPostgresSettingsHaveAVersion(t *testing.T) {
	t.Parallel()
	w := newWorkbench(t, time.Minute)
	for _, version := range []string{"-1", "9007199254740993"} {
		_, err := w.pool.Exec(t.Context(), `UPDATE `+w.schema+`.queues SET settings_version = `+version)
		if err == nil || !strings.Contains(err.Error(), "queues_settings_version") {
			t.Errorf("version %s is admitted: %v", version, err)
		}
	}
}
