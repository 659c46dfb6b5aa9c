package integration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
)

// revive revives all dead letters by a filter. The first call is stopped in the middle, and a
// second one continues from its checkpoint. Each letter is revived once.
func (m *measured) revive() {
	m.T.Helper()
	m.T.Run("revive", func(t *testing.T) {
		before := m.Counts(t)
		began := time.Now()
		ctx, stop := context.WithCancel(t.Context())
		var text inspect.Checkpoint
		o := inspect.BulkOptions{Filter: "all", Checkpoint: func(c inspect.Checkpoint) { text = c }}
		o.Progress = func(p inspect.Progress) {
			if p.Done > p.Total/2 {
				stop()
			}
		}
		all := func(d inspect.DeadLetter) bool { return d.PayloadCount > 0 }
		first, err := inspect.New(m.Store, inspect.Options{}).ReviveAll(ctx, "orders", all, o)
		if !errors.Is(err, context.Canceled) || first.Handled == 0 || first.Checkpoint != text {
			t.Fatalf("the first call returned %+v, %v; want context.Canceled, its checkpoint and a part of the letters", first, err)
		}
		second, err := inspect.New(m.Store, inspect.Options{}).ReviveAll(t.Context(), "orders", all, inspect.BulkOptions{Filter: "all", Continue: text})
		must(t, err)
		// It is logged, and compared with nothing: a slow machine prints more.
		t.Logf("%d of %d dead letters over %d shards revived in %v, %d by the first", second.Handled, before.Dead, m.Shards, time.Since(began), first.Handled)
		after := m.Counts(t)
		if after.Dead != 0 || after.Fresh != before.Fresh+before.Dead {
			t.Errorf("%d letters are dead and %d jobs fresh, of %d and %d before", after.Dead, after.Fresh, before.Dead, before.Fresh)
		}
	})
}
