package redis_test

import (
	"context"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// refusedPushes is a hook of a client that sends the errors of scripts to a channel.
type refusedPushes struct{ refused chan error }

func (refusedPushes) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (h refusedPushes) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		err := next(ctx, cmd)
		if err != nil && strings.HasPrefix(cmd.Name(), "eval") {
			h.refused <- err
		}
		return err
	}
}

func (refusedPushes) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// A server that refuses writes for a moment has written nothing. So a push, which is otherwise
// sent once, is repeated, and its caller gets no error.
func TestRedisPushWaitsForAServerThatRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		says string
		// refuse makes the server refuse calls until accept is called.
		refuse func(*testing.T, *goredis.Client) (accept func())
	}{
		{"NOREPLICAS", func(t *testing.T, client *goredis.Client) func() {
			must(t, client.ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
			return func() { must(t, client.ConfigSet(t.Context(), "min-replicas-to-write", "0").Err()) }
		}},
		{"BUSY", func(t *testing.T, client *goredis.Client) func() {
			must(t, client.ConfigSet(t.Context(), "busy-reply-threshold", "1").Err())
			go client.Do(t.Context(), "eval", "while true do end", 0)
			return func() { must(t, client.ScriptKill(t.Context()).Err()) }
		}},
	} {
		t.Run(tt.says, func(t *testing.T) {
			t.Parallel()
			client := testservers.OwnRedis(t).(*goredis.Client)
			store := redis.New(client, redis.Options{})
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
			must(t, err)
			push := ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{{ID: "a"}}}
			_, err = store.Push(t.Context(), push)
			must(t, err)
			accept := tt.refuse(t, client)
			for err = nil; err == nil || !strings.HasPrefix(err.Error(), tt.says); { // until it refuses
				err = client.Set(t.Context(), "any", "", 0).Err()
			}
			hook := refusedPushes{refused: make(chan error, 10_000)}
			client.AddHook(hook)
			pushed := make(chan error, 1)
			push.Entries[0].ID = "b"
			go func() {
				_, err := store.Push(t.Context(), push)
				pushed <- err
			}()
			for range 2 {
				select {
				case err := <-hook.refused:
					if !strings.HasPrefix(err.Error(), tt.says) {
						t.Errorf("a push is refused by %v, want %s", err, tt.says)
					}
				case err := <-pushed:
					t.Fatalf("Push to a server that refuses gave %v", err)
				case <-time.After(testservers.Patience):
					t.Fatal("a push that was refused is not repeated")
				}
			}
			accept()
			if err := <-pushed; err != nil {
				t.Errorf("Push to a server that refused for a moment gave %v", err)
			}
		})
	}
}
