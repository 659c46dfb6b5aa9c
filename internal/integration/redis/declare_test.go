package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// Declare makes the queue's record and then each shard's. If Forget removes all of them in
// between, the queue is declared all the same: nothing is pushed to shards that are in no list and
// would obstruct the next Declare, with another shard count.
func TestRedisDeclareRacesForget(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	store := openFrozen(client)
	declare := ports.DeclareRequest{Queue: "orders", Shards: 1}
	_, err := store.Declare(t.Context(), declare)
	must(t, err)
	late := goredis.NewClient(client.Options())
	defer late.Close()
	late.AddHook(&beforeShards{scripts: true, do: func() { must(t, store.Forget(t.Context(), "orders")) }})

	_, err = openFrozen(late).Declare(t.Context(), declare)
	must(t, err)
	queues, err := store.Queues(t.Context())
	must(t, err)
	if len(queues) != 1 || queues[0].Shards != 1 {
		t.Errorf("after Declare the queues are %+v, want orders with 1 shard", queues)
	}
	_, err = store.Push(t.Context(), ports.PushRequest{
		Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a", Payload: core.Payload{Data: []byte("x")}}},
	})
	must(t, err)
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: "orders", ID: "a", Payloads: 1000})
	must(t, err)
	if found.Queued == nil {
		t.Errorf("found %+v, want the job queued", found)
	}
}
