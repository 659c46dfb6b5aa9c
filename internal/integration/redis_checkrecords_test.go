package integration_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// getPipelines counts the pipelines that begin with GET.
type getPipelines struct{ atomic.Int64 }

func (*getPipelines) DialHook(next goredis.DialHook) goredis.DialHook          { return next }
func (*getPipelines) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }
func (n *getPipelines) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		if cmds[0].Name() == "get" {
			n.Add(1)
		}
		return next(ctx, cmds)
	}
}

// The records of many small queues are read together. One that can't be read hides no other that is
// wrong.
func TestRedisRecordsOfManyQueuesAreChecked(t *testing.T) {
	t.Parallel()
	const queues = 300
	client := testservers.OwnRedis(t).(*goredis.Client)
	looking := goredis.NewClient(client.Options())
	defer looking.Close()
	gets, cuts := new(getPipelines), new(cutShards)
	looking.AddHook(gets)
	looking.AddHook(cuts)
	store := redis.New(looking, redis.Options{})
	for n := range queues {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: fmt.Sprint("queue-", n), Shards: 1})
		must(t, err)
	}
	records := func() ports.Check {
		t.Helper()
		rows, err := store.Check(t.Context())
		must(t, err)
		for _, row := range rows {
			if row.Name == "records" {
				return row
			}
		}
		t.Fatal("no row is of the records")
		return ports.Check{}
	}
	gets.Store(0)
	if row := records(); row.Status != ports.CheckOK || row.Value != "all 600 records of queues and shards can be read" {
		t.Errorf("the row is %+v, want 600 records that can be read", row)
	}
	if n := gets.Load(); n != 2 {
		t.Errorf("the records of %d shards were read in %d exchanges, want 2", queues, n)
	}
	s := severable{store, cuts, "skein:"}
	mend := s.Sever(core.Shard{Queue: "queue-7"})
	if row := records(); row.Status != ports.CheckUnknown || !strings.HasPrefix(row.Value, "1 could not be read") {
		t.Errorf("the row without a shard is %+v, want 1 record that could not be read", row)
	}
	must(t, client.Set(t.Context(), "skein:{queue-8/0}:m", "garbage", 0).Err())
	if row := records(); row.Status != ports.CheckFail || !strings.Contains(row.Value, "queue-8/0 can't be read") {
		t.Errorf("the row without a shard is %+v, want the one that is wrong", row)
	}
	mend()
}
