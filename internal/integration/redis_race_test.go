package integration_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A pause and a resume change the queue's record and then each shard. Where the
// second comes between the two halves of the first, it is the last: all shards end
// as it says.
func TestRedisPauseRacesResume(t *testing.T) {
	t.Parallel()
	for name, paused := range map[string]bool{"a resume comes in between": false, "a pause comes in between": true} {
		t.Run(name, func(t *testing.T) {
			client := testservers.OwnRedis(t).(*goredis.Client)
			first, second := pausing, resuming
			if paused {
				first, second = resuming, pausing
			}
			w := newWorker(t, client, false)
			must(t, second(w))
			late := goredis.NewClient(client.Options())
			defer late.Close()
			late.AddHook(&beforeShards{do: func() { must(t, second(w)) }})
			must(t, first(&worker{t: t, store: openWorks(late)}))

			queues, err := w.store.Queues(t.Context())
			must(t, err)
			if queues[0].Paused != paused {
				t.Errorf("the queue's record says paused %t, want %t", queues[0].Paused, paused)
			}
			must(t, w.turn(ports.TurnRequest{Want: 1}))
			if _, claimed := w.claims["b"]; claimed == paused {
				t.Errorf("its shard gives a job: %t, but the queue's record says paused %t", claimed, paused)
			}
		})
	}
}

// beforeShards calls do once, before the first command that names a shard's key.
type beforeShards struct {
	once sync.Once
	do   func()
}

func (b *beforeShards) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (b *beforeShards) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		for _, arg := range cmd.Args() {
			if text, ok := arg.(string); ok && strings.HasPrefix(text, "skein:{orders/0}:") {
				b.once.Do(b.do)
			}
		}
		return next(ctx, cmd)
	}
}

func (b *beforeShards) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}
