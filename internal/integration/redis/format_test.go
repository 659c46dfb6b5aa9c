package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// A program that meets the data of a newer one returns an error before it writes. It may continue
// if the newer one allows it, as while programs are replaced one after another.
func TestRedisFormats(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		stored string
		fits   bool
		then   string
	}{
		{"nothing", "", true, "1 1"},
		{"its own", "1 1", true, "1 1"},
		{"a newer one that it may use", "7 1", true, "7 1"},
		{"a newer one that it may not use", "7 2", false, "7 2"},
		{"nonsense", "x", false, "x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			client := testservers.Redis(t)
			prefix := testservers.Prefix(t, client)
			key := prefix + "queues"
			if tt.stored != "" {
				if err := client.HSet(t.Context(), key, "/format", tt.stored).Err(); err != nil {
					t.Fatal(err)
				}
			}
			store := redis.New(client, redis.Options{Prefix: prefix})
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 2})
			if (err == nil) != tt.fits {
				t.Errorf("Declare gave %v", err)
			}
			if tt.stored == "7 2" &&
				(!errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "update the program")) {
				t.Errorf("Declare gave %v; want ErrUnusable that says what to do", err)
			}
			if got := client.HGet(t.Context(), key, "/format").Val(); got != tt.then {
				t.Errorf("then the format is %q, want %q", got, tt.then)
			}
			if keys := client.HLen(t.Context(), key).Val(); !tt.fits && keys != 1 {
				t.Errorf("%d fields are stored, want none beside the format", keys)
			}
		})
	}
}

// A program that was started before a newer one has stored its format gets an error from its next
// Declare.
func TestRedisFormatsOfANewerProgramBeside(t *testing.T) {
	t.Parallel()
	client := testservers.Redis(t)
	prefix := testservers.Prefix(t, client)
	store := redis.New(client, redis.Options{Prefix: prefix})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); err != nil {
		t.Fatal(err)
	}
	if err := client.HSet(t.Context(), prefix+"queues", "/format", "2 2").Err(); err != nil {
		t.Fatal(err)
	}
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "mail", Shards: 1})
	kit.Unusable(t, "Declare", err, "update the program")
	queues, err := store.Queues(t.Context())
	if diff := cmp.Diff([]ports.Queue{{Name: "orders", Shards: 1, Generation: 1}}, queues); err != nil || diff != "" {
		t.Errorf("the queues (%v, -want +got):\n%s", err, diff)
	}
	if err := store.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	if err := client.HGet(t.Context(), prefix+"queues", "/format").Err(); !errors.Is(err, goredis.Nil) {
		t.Errorf("once the last queue is forgotten the format is still there (%v)", err)
	}
}
