package redis_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

const settingsOfOrders = "orders/settings"

// lanesSet returns settings of a version with a limit of lanes.
func lanesSet(version int64, lanes string) ports.ConfigureRequest {
	return ports.ConfigureRequest{Queue: "orders", Settings: core.Settings{
		Version: version,
		Set:     []core.Setting{{Name: core.SettingMaxLanes, Value: lanes, By: "ann", At: 7}},
	}}
}

// settings are those of the queue orders, which must be the only one listed.
func (w *worker) settings(t *testing.T) core.Settings {
	t.Helper()
	queues, err := w.store.Queues(t.Context())
	must(t, err)
	if len(queues) != 1 || queues[0].Name != "orders" {
		t.Fatalf("the queues are %+v", queues)
	}
	return queues[0].Settings
}

// Settings that can't be read stop no call, are logged once and reported, and are replaced by the next
// change. Only a version that can be read is compared.
func TestRedisBrokenSettingsAreReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text       string
		version, refused int64
		next             int64
	}{
		{"no version", "garbage", 0, 0, 1},
		{"nothing behind the version", "4", 0, 0, 9},
		{"no JSON", "4 garbage", 4, 4, 5},
		{"a version with a sign", `+4 {"settings":[]}`, 0, 0, 3},
		{"a version too large", `9007199254740999 {"settings":[]}`, 0, 0, 3},
		{"names out of order", `4 {"settings":[{"name":"b"},{"name":"a"}]}`, 4, 6, 5},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorker(t, testservers.OwnRedis(t), false)
			ctx := t.Context()
			var log strings.Builder
			w.store = redis.New(w.client, redis.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
			must(t, w.client.HSet(ctx, "skein:queues", settingsOfOrders, tt.text).Err())

			want := core.Settings{Version: tt.version, Broken: true}
			for range 3 {
				if got := w.settings(t); !got.Equal(want) {
					t.Errorf("the settings are %+v, want %+v", got, want)
				}
				stats, err := w.store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
				if err != nil || !stats[0].Queue.Settings.Equal(want) {
					t.Errorf("in Stats: %+v, %v", stats, err)
				}
				must(t, w.store.Pause(ctx, "orders"))
			}
			if n := strings.Count(log.String(), "settings of a queue can't be read"); n != 1 {
				t.Errorf("the log has it %d times, want once:\n%s", n, log.String())
			}

			rows, err := w.store.Check(ctx)
			must(t, err)
			if row := rows[len(rows)-1]; row.Name != "records" || row.Status != ports.CheckWarn || row.Refuses ||
				!strings.Contains(row.Value, "the settings of the queue orders can't be read") ||
				!strings.Contains(row.Value, "set one of them again") {
				t.Errorf("the row is %+v, want a warning of the settings", row)
			}

			if tt.refused > 0 {
				err := w.store.Configure(ctx, lanesSet(tt.refused, "1"))
				conflict, ok := errors.AsType[*ports.SettingsConflictError](err)
				if !ok || !conflict.Settings.Equal(want) {
					t.Errorf("version %d: %v, want a conflict with %+v", tt.refused, err, want)
				}
			}
			next := lanesSet(tt.next, "1")
			must(t, w.store.Configure(ctx, next))
			if got := w.settings(t); !got.Equal(next.Settings) {
				t.Errorf("after a change the settings are %+v, want %+v", got, next.Settings)
			}
		})
	}
}

// The loss of the queue's record leaves its settings, whether the queue is declared again, its shards
// have kept the record, or a recount restores it.
func TestRedisALostQueueRecordLeavesItsSettings(t *testing.T) {
	t.Parallel()
	w := newWorker(t, testservers.OwnRedis(t), false)
	ctx := t.Context()
	want := lanesSet(1, "3")
	must(t, w.store.Configure(ctx, want))

	for what, restore := range map[string]func() error{
		"a declaration": func() error { return w.declare("orders") },
		"a recount": func() error {
			_, err := w.store.Recount(ctx, ports.RecountRequest{Shard: w.shard})
			return err
		},
	} {
		must(t, w.client.HDel(ctx, "skein:queues", "orders").Err())
		stats, err := w.store.Stats(ctx, ports.StatsRequest{Queues: []string{"orders"}})
		if err != nil || !stats[0].Queue.Settings.Equal(want.Settings) {
			t.Errorf("before %s: %+v, %v", what, stats, err)
		}
		if queues, err := w.store.Queues(ctx); err != nil || len(queues) > 0 {
			t.Errorf("before %s the queues are %+v, %v", what, queues, err)
		}
		must(t, restore())
		if got := w.settings(t); !got.Equal(want.Settings) {
			t.Errorf("after %s the settings are %+v", what, got)
		}
	}
}

// The last queue takes the format and the store's id with it, whatever settings it had.
func TestRedisForgetLeavesNoSettings(t *testing.T) {
	t.Parallel()
	client, ctx := testservers.OwnRedis(t), t.Context()
	store := redis.New(client, redis.Options{})
	for _, queue := range []string{"orders", "others"} {
		_, err := store.Declare(ctx, ports.DeclareRequest{Queue: queue, Shards: 2})
		must(t, err)
	}
	must(t, store.Configure(ctx, lanesSet(1, "3")))
	must(t, store.Forget(ctx, "orders"))
	if client.HExists(ctx, "skein:queues", settingsOfOrders).Val() {
		t.Error("the settings are left")
	}
	must(t, store.Forget(ctx, "others"))
	if fields := client.HKeys(ctx, "skein:queues").Val(); len(fields) > 0 {
		t.Errorf("the list of queues has %q", fields)
	}
}

// Fields of a newer program in the list of queues are no queues.
func TestRedisFieldsWithASlashAreNoQueues(t *testing.T) {
	t.Parallel()
	w := newWorker(t, testservers.OwnRedis(t), false)
	ctx := t.Context()
	must(t, w.client.HSet(ctx, "skein:queues", "orders/more", "1 0 1 1 1 +").Err())
	w.settings(t)
	for _, name := range []string{"orders/more", settingsOfOrders, "/format"} {
		if err := w.store.Pause(ctx, name); !errors.Is(err, ports.ErrUnknownQueue) {
			t.Errorf("Pause of %s returned %v", name, err)
		}
		if err := w.store.Forget(ctx, name); !errors.Is(err, ports.ErrUnknownQueue) {
			t.Errorf("Forget of %s returned %v", name, err)
		}
	}
}
