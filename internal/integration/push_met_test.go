package integration_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// The stores on Redis and on Postgres report what a push met. The contract does not require it.
func TestStoresSayWhatPushesMet(t *testing.T) {
	t.Parallel()
	redisServer := testservers.Redis(t)
	for name, store := range map[string]ports.ShardStore{
		"Redis":    redis.New(redisServer, redis.Options{Prefix: testservers.Prefix(t, redisServer)}),
		"Postgres": kit.NewPostgres(t, testservers.Postgres(t)),
	} {
		t.Run(name, func(t *testing.T) {
			declared, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 4})
			if err != nil {
				t.Fatal(err)
			}
			entry := func(id, data string) core.Entry {
				return core.Entry{ID: id, Payload: core.Payload{Data: []byte(data)}}
			}
			for _, push := range []struct {
				entries []core.Entry
				want    ports.PushReply
			}{
				{[]core.Entry{entry("a", "p")}, ports.PushReply{New: 1}},
				{[]core.Entry{entry("a", "p")}, ports.PushReply{Duplicate: 1}},
				{[]core.Entry{entry("a", "q")}, ports.PushReply{Merged: 1}},
				{[]core.Entry{entry("b", "p"), entry("c", "p"), entry("a", "r"), entry("b", "p")}, ports.PushReply{New: 2, Merged: 1, Duplicate: 1}},
			} {
				r := ports.PushRequest{
					Queue: "orders", Shards: 4, Generation: declared.Generation, Entries: push.entries,
				}
				reply, err := store.Push(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				push.want.Now = reply.Now
				if diff := cmp.Diff(push.want, reply); diff != "" {
					t.Errorf("a push of %d entries (-want +got):\n%s", len(push.entries), diff)
				}
			}
		})
	}
}
