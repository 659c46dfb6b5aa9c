package redis

import (
	"errors"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

func TestAStoreWithoutAClientSaysSo(t *testing.T) {
	var client *goredis.Client
	for name, store := range map[string]*Store{"nil": New(nil, Options{}), "a nil pointer": New(client, Options{})} {
		if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Declare = %v, want ErrUnusable", name, err)
		}
		if err := store.Ping(t.Context()); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Ping = %v, want ErrUnusable", name, err)
		}
	}
}
