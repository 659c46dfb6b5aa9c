package integration_test

import (
	"errors"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// A shard of which a master has only some keys, as after a failover amid the migration of its
// slot, is said to be torn, by each call that meets what is missing.
func TestRedisTornShardIsNamed(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for _, tt := range []struct {
		key  string // is missing
		name string
		call func(*worker) error
	}{
		{"j", "a turn", func(w *worker) error { return w.turn(ports.TurnRequest{Want: 10}) }},
		{"j", "a list", func(w *worker) error {
			_, err := w.store.Jobs(w.t.Context(), ports.JobsRequest{PageRequest: ports.PageRequest{Queue: "orders", Limit: 10}})
			return err
		}},
		{"r", "a push", func(w *worker) error { return w.push(one("b", 5), one("z", 1)) }},
		{"r", "a step", func(w *worker) error {
			_, err := w.store.Expedite(w.t.Context(), w.step("b"))
			return err
		}},
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, false)
		must(t, client.Del(t.Context(), "skein:{orders/0}:"+tt.key).Err())
		if err := tt.call(w); !errors.Is(err, redis.ErrTorn) || storekit.HasKnownOutcome(err) {
			t.Errorf("%s without the key %s gave %v, want %v", tt.name, tt.key, err, redis.ErrTorn)
		}
	}
}
