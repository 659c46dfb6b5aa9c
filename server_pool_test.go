package skein_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// pooledStore is a store with a pool of n connections.
type pooledStore struct {
	*memory.Store
	connections int
}

func (s pooledStore) Connections() int { return s.connections }

// A pool that the lanes can use up is in the log once, when a handler is the first to settle in a
// transaction, and not where none does.
func TestAPoolThatLanesCanUseUpIsInTheLogOnce(t *testing.T) {
	for name, c := range map[string]struct {
		connections int
		settles     bool
		want        int
	}{
		"as many as lanes":    {8, true, 1},
		"fewer than lanes":    {4, true, 1},
		"more than lanes":     {9, true, 0},
		"without a bound":     {0, true, 0},
		"not in transactions": {4, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inner, log := memory.New(memory.Options{}), newRecorder(slog.LevelInfo)
				q := skein.NewQueue("q", skein.QueueOptions[string]{})
				pushMany(t, inner, q, 20)

				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				server := skein.NewServer(
					pooledStore{inner, c.connections},
					skein.ServerOptions{Lanes: 8, Logger: slog.New(log)},
					q.Handler(func(ctx context.Context, _ string, _ []string) error {
						if c.settles {
							return skein.SettleIn(ctx, inner)
						}
						return nil
					}),
				)

				done := make(chan error, 1)
				go func() { done <- server.Run(ctx) }()
				time.Sleep(time.Second)
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}

				if got := log.of(slog.LevelWarn, "needs attention"); len(got) != c.want ||
					c.want > 0 && got[0]["check"].String() != "pool" {
					t.Errorf("the log says %v; want %d rows of the pool", got, c.want)
				}
			})
		})
	}
}
