package cluster_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

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
		_, err := store.Announce(t.Context(),
			ports.AnnounceRequest{Node: ports.Node{Owner: "a", Name: "a"}, TTL: time.Minute})
		return err
	}
	refused := func(what string, err error, text string) {
		t.Helper()
		if err == nil || errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s beside records of a newer form gave %v; want an error that passes, and says %q",
				what, err, text)
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
	kit.Unusable(t, "Announce once the format can be read", err, "update the program")
	kit.Unusable(t, "Declare once the format can be read", declare(), "update the program")
}
