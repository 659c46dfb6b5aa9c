package integration_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// While a master of a Cluster is dead, statistics and lists have what the others have, within a second,
// and name the shards that they lack.
func TestRedisDeadMasterHidesOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.without("skein:queues")
	o.looksBesideAnOutage(lost, healthy, func() { testservers.Kill(t, failing) })
}

// So it is if that master has the list of queues, also for who looks for the first time.
func TestRedisDeadRegistryHidesOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	node, err := o.cluster.MasterForKey(t.Context(), "skein:queues")
	must(t, err)
	failing := testservers.RedisNode(t, node.Options().Addr)
	lost, healthy := o.divideBy(failing)
	o.looksBesideAnOutage(lost, healthy, func() { testservers.Kill(t, failing) })
}

// And while it hangs.
func TestRedisHungRegistryHidesOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	node, err := o.cluster.MasterForKey(t.Context(), "skein:queues")
	must(t, err)
	failing := testservers.RedisNode(t, node.Options().Addr)
	lost, healthy := o.divideBy(failing)
	o.looksBesideAnOutage(lost, healthy, func() { testservers.Freeze(t, failing) })
}

// Statistics of all queues need the list. A store that has seen it answers for what it knows, also for a queue all
// of whose shards are away.
func TestRedisDeadRegistryHidesNoQueueThatWasSeen(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	node, err := o.cluster.MasterForKey(t.Context(), "skein:queues")
	must(t, err)
	failing := testservers.RedisNode(t, node.Options().Addr)
	lost, healthy := o.divideBy(failing)
	all := inspect.New(redis.New(o.connect(), redis.Options{}), inspect.Options{})
	single := ""
	for i := 0; single == ""; i++ {
		name := fmt.Sprint("single-", i)
		if at, err := o.cluster.MasterForKey(t.Context(), "skein:{"+name+"/0}:meta"); err == nil && at.Options().Addr == node.Options().Addr {
			single = name
		}
	}
	store := redis.New(o.connect(), redis.Options{})
	_, err = store.Declare(t.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(t, err)
	_, err = store.Declare(t.Context(), ports.DeclareRequest{Queue: single, Shards: 1})
	must(t, err)
	_, err = all.Stats(t.Context())
	must(t, err)
	testservers.Kill(t, failing)
	inTime(t, func() (late time.Duration) {
		began := time.Now()
		stats, err := all.Stats(t.Context())
		took := time.Since(began)
		var part *inspect.PartialError
		if !errors.As(err, &part) || len(part.Unreached) != len(lost)+1 {
			t.Fatalf("statistics of all queues while the list is away: %v; want %d shards unreached", err, len(lost)+1)
		}
		if len(stats) != 2 || stats[0].Queue.Name != "outages" || len(stats[0].Shards) != len(healthy) || stats[1].Queue.Name != single || len(stats[1].Shards) != 0 {
			t.Errorf("statistics of all queues while the list is away: %+v", stats)
		}
		t.Logf("statistics of all queues: %v", took)
		return took - 2*time.Second
	})
	if _, err := inspect.New(redis.New(o.connect(), redis.Options{}), inspect.Options{}).Stats(t.Context()); err == nil {
		t.Error("who has never seen the list has statistics of all queues")
	}
}

// looksBesideAnOutage puts entries of every kind into each shard, lets the outage begin, and looks.
func (o *outage) looksBesideAnOutage(lost, healthy []int, begin func()) {
	o.Helper()
	store := redis.New(o.connect(), redis.Options{})
	_, err := store.Declare(o.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(o, err)
	for i, shard := range core.Shards("outages", outageShards) {
		entries := []core.Entry{{ID: idOfShard(i)}, {ID: buriedIDOfShard(i)}}
		_, err := store.Push(o.Context(), ports.PushRequest{Queue: "outages", Shards: outageShards, Generation: 1, Entries: entries})
		must(o, err)
		_, err = store.Bury(o.Context(), ports.JobStep{Shard: shard, IDs: []string{entries[1].ID}})
		must(o, err)
	}
	var unreached []core.Shard
	for _, i := range lost {
		unreached = append(unreached, core.Shard{Queue: "outages", Index: i})
	}
	started := redis.New(o.connect(), redis.Options{}) // its client knows the Cluster, it has asked it nothing
	must(o, started.Ping(o.Context()))
	begin()
	for name, s := range map[string]*redis.Store{"that has worked": store, "that looks for the first time": started} {
		inTime(o.T, func() (late time.Duration) {
			for what, look := range looks(s) {
				began := time.Now()
				n, missing, err := look(o.Context())
				took := time.Since(began)
				if err != nil || n != len(healthy) || !slices.Equal(missing, unreached) {
					o.Errorf("%s of a store %s: %d entries without %v (%v), want %d without %v", what, name, n, missing, err, len(healthy), unreached)
				}
				o.Logf("%s of a store %s: %v", what, name, took)
				late = max(late, took-time.Second)
			}
			return late
		})
	}
	verdict, err := inspect.New(store, inspect.Options{}).Why(o.Context(), "outages", idOfShard(healthy[0]))
	if err != nil || verdict.Found.Queued == nil {
		o.Errorf("Why of a job of a shard that is reached: %+v, %v", verdict, err)
	}
}

// buriedIDOfShard returns another id of a shard than idOfShard.
func buriedIDOfShard(shard int) string {
	for i := 0; ; i++ {
		if id := fmt.Sprint("buried-", i); core.ShardOf(id, outageShards) == shard {
			return id
		}
	}
}

// looks are calls that look, each of which returns how many entries, or shards, it has found and which
// shards it lacks.
func looks(s *redis.Store) map[string]func(context.Context) (int, []core.Shard, error) {
	page := ports.PageRequest{Queue: "outages", Limit: 5 * outageShards}
	return map[string]func(context.Context) (int, []core.Shard, error){
		"Stats": func(ctx context.Context) (int, []core.Shard, error) {
			stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{"outages"}})
			if err != nil {
				return 0, nil, err
			}
			return len(stats[0].Shards), stats[0].Unreached, nil
		},
		"Jobs": func(ctx context.Context) (int, []core.Shard, error) {
			p, err := s.Jobs(ctx, ports.JobsRequest{PageRequest: page})
			return len(p.Jobs), p.Unreached, err
		},
		"Morgue": func(ctx context.Context) (int, []core.Shard, error) {
			p, err := s.Morgue(ctx, ports.MorgueRequest{PageRequest: page, ByID: true})
			return len(p.DeadLetters), p.Unreached, err
		},
		"Claimed": func(ctx context.Context) (int, []core.Shard, error) {
			p, err := s.Claimed(ctx, page)
			return len(p.Claims) + outageShards - len(p.Unreached), p.Unreached, err
		},
	}
}
