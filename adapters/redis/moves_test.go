package redis

import (
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
)

// A channel that is not subscribed to is tried again after a pause that doubles up to a bound,
// until it is.
func TestAChannelIsRetriedEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newNaming(0, "10.0.0.1:1")
		shard := core.Shard{Queue: "orders"}
		s := cluster.connect(t)
		w, channel := newWakeups(s, []core.Shard{shard}), s.channel(shard)
		pauses := func(n int) (all []time.Duration) {
			for range n {
				w.mu.Lock()
				w.retry(t.Context(), channel, errors.New("nobody is there"))
				all = append(all, time.Until(w.waiting[channel]))
				w.mu.Unlock()
			}
			return all
		}

		const ms = time.Millisecond
		want := []time.Duration{
			10 * ms, 20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1280 * ms, 2000 * ms, 2000 * ms,
		}
		if diff := cmp.Diff(want, pauses(len(want))); diff != "" {
			t.Errorf("pauses (-want +got):\n%s", diff)
		}

		w.mu.Lock()
		w.confirm(channel)
		w.mu.Unlock()
		if diff := cmp.Diff([]time.Duration{10 * ms, 20 * ms}, pauses(2)); diff != "" {
			t.Errorf("pauses once it was subscribed to (-want +got):\n%s", diff)
		}
	})
}

// If a server of a Cluster no longer has a slot, or does not answer, the client reads the slot map
// again. After refusals for other reasons it does not.
func TestMovesAreNoted(t *testing.T) {
	for name, tt := range map[string]struct {
		note func(*Store)
		asks int32
	}{
		"a channel that is tried again": {func(s *Store) {
			w := newWakeups(s, []core.Shard{{Queue: "orders"}})
			w.mu.Lock()
			defer w.mu.Unlock()
			w.retry(t.Context(), s.channel(core.Shard{Queue: "orders"}), nil)
		}, 1},
		"a slot that has moved": {func(s *Store) {
			s.link.NoteMoves(t.Context(), refusal("MOVED 12 10.0.0.2:1"))
		}, 1},
		"a connection that broke": {func(s *Store) { s.link.NoteMoves(t.Context(), io.EOF) }, 1},
		"what is not there":       {func(s *Store) { s.link.NoteMoves(t.Context(), goredis.Nil) }, 0},
		"a refusal": {func(s *Store) {
			s.link.NoteMoves(t.Context(), refusal("ERR unknown command"))
		}, 0},
		"a call that was answered":  {func(s *Store) { s.link.NoteMoves(t.Context(), nil) }, 0},
		"a slot that is on its way": {func(s *Store) { s.link.NoteMoves(t.Context(), refusal("TRYAGAIN")) }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := newNaming(0, "10.0.0.1:1")
				tt.note(cluster.connect(t))

				time.Sleep(time.Minute)
				if n := cluster.asked.Load(); n != tt.asks {
					t.Errorf("the Cluster was asked %d times, want %d", n, tt.asks)
				}
			})
		})
	}
}
