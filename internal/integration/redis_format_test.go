package integration_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
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
			if tt.stored == "7 2" && (!errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "update the program")) {
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
	says(t, "Declare", err, "update the program")
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

// While the master with the list of queues hangs, a program that starts takes the format from a
// shard's record. It writes nothing if a newer program has changed that record, and once the list
// can be read it no longer uses the store.
func TestRedisFormatBesideAHungRegistry(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, _, healthy := o.registry()
	o.fill(redis.New(o.connect(), redis.Options{}))
	must(t, o.cluster.HSet(t.Context(), "skein:queues", "/format", "2 2").Err())
	shard := core.Shard{Queue: "outages", Index: healthy[0]}
	record := func(i int) string { return fmt.Sprintf("skein:{outages/%d}:m", i) }
	kept := make(map[int]string)
	for i := range outageShards {
		kept[i] = o.cluster.Get(t.Context(), record(i)).Val()
		must(t, o.cluster.Set(t.Context(), record(i), "v2 "+kept[i], 0).Err())
	}
	thaw := testservers.Freeze(t, failing)
	store := redis.New(o.connect(), redis.Options{})
	declare := func() error {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
		return err
	}
	announce := func() error {
		_, err := store.Announce(t.Context(), ports.AnnounceRequest{Node: ports.Node{Owner: "a", Name: "a"}, TTL: time.Minute})
		return err
	}
	refused := func(what string, err error, text string) {
		t.Helper()
		if err == nil || errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s beside records of a newer form gave %v; want an error that passes, and says %q", what, err, text)
		}
	}
	refused("Declare", declare(), "list of queues")
	refused("Announce", announce(), "nothing was written")
	_, err := store.Bury(t.Context(), ports.JobStep{Shard: shard, IDs: []string{idOfShard(shard.Index)}})
	refused("Bury", err, "nothing was written")
	for _, i := range healthy {
		must(t, o.cluster.Set(t.Context(), record(i), kept[i], 0).Err())
	}
	if err := declare(); err != nil {
		t.Errorf("Declare beside records of its own form = %v", err)
	}
	if err := announce(); err != nil {
		t.Errorf("Announce after that = %v", err)
	}
	thaw()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // until the store has read the format
		if err = announce(); errors.Is(err, ports.ErrUnusable) {
			break
		}
		if time.Since(began) > testservers.Patience {
			t.Fatalf("Announce once the format can be read = %v, want ErrUnusable", err)
		}
	}
	says(t, "Announce once the format can be read", err, "update the program")
	says(t, "Declare once the format can be read", declare(), "update the program")
}
