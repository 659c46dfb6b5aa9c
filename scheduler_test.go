package skein_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// Seq visits a shard that gave a job again at once, whichever handler works it.
func TestSeqGoesOnAfterASuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		store := memory.New(memory.Options{})
		queue := skein.NewQueue("orders", skein.QueueOptions[string]{Shards: 1})
		for _, id := range []string{"a", "b", "c"} {
			push(t, store, queue, id, "x")
		}
		var last atomic.Int64
		h := queue.Handler(func(context.Context, string, []string) error {
			last.Store(int64(time.Since(start)))
			return nil
		})
		o := skein.ServerOptions{Scheduler: skein.Seq, PollInterval: time.Minute, Logger: quiet}
		run(t, skein.NewServer(store, o, h), func() { time.Sleep(time.Hour) })
		if last := time.Duration(last.Load()); last > time.Minute {
			t.Errorf("the last of three jobs ran after %v, want within a poll interval", last)
		}
	})
}
