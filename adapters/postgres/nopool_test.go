package postgres

import (
	"errors"
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestAStoreWithoutAPoolSaysSo(t *testing.T) {
	store := New(nil, Options{})
	push := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "order-1"}}}
	for name, call := range map[string]func() error{
		"Declare": func() error {
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
			return err
		},
		"Push":    func() error { _, err := store.Push(t.Context(), push); return err },
		"Queues":  func() error { _, err := store.Queues(t.Context()); return err },
		"Wakeups": func() error { _, err := store.Wakeups(t.Context(), core.Shards("orders", 1)); return err },
		"Ping":    func() error { return store.Ping(t.Context()) },
		"Migrate": func() error { return Migrate(t.Context(), nil, MigrateOptions{}) },
	} {
		if err := call(); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s = %v, want ErrUnusable", name, err)
		}
	}
}
