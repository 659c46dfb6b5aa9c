package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
	"github.com/skeinq/skein/ports"
)

// While a master of a Cluster is dead, statistics and lists soon have the entries of the others,
// and name the missing shards.
func TestRedisDeadMasterHidesOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.without("skein:queues")
	o.looksBesideAnOutage(lost, healthy, func() { testservers.Kill(t, failing) })
}

// The same holds if that master has the list of queues, also for a program that looks for the
// first time.
func TestRedisDeadRegistryHidesOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.registry()
	o.looksBesideAnOutage(lost, healthy, func() { testservers.Kill(t, failing) })
}

// The same holds while that master hangs.
func TestRedisHungRegistryHidesOnlyItsShards(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.registry()
	o.looksBesideAnOutage(lost, healthy, func() { testservers.Freeze(t, failing) })
}

// Statistics of all queues need the list. A store that has seen it answers from memory, also for a
// queue all of whose shards can't be reached.
func TestRedisDeadRegistryHidesNoQueueThatWasSeen(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	failing, lost, healthy := o.registry()
	all := inspect.New(redis.New(o.connect(), redis.Options{}), inspect.Options{})
	single := ""
	for i := 0; single == ""; i++ {
		name := fmt.Sprint("single-", i)
		if at, err := o.cluster.MasterForKey(t.Context(), "skein:{"+name+"/0}:meta"); err == nil &&
			at.Options().Addr == failing.Options().Addr {
			single = name
		}
	}
	store := redis.New(o.connect(), redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(t, err)
	_, err = store.Declare(t.Context(), ports.DeclareRequest{Queue: single, Shards: 1})
	must(t, err)
	_, err = all.Stats(t.Context())
	must(t, err)
	testservers.Kill(t, failing)
	began := time.Now()
	stats, err := all.Stats(t.Context())
	if took := time.Since(began); took > muchTooLate {
		t.Errorf("statistics of all queues took %v", took)
	}
	var part *inspect.PartialError
	if !errors.As(err, &part) || len(part.Unreached) != len(lost)+1 {
		t.Fatalf("statistics of all queues while the list is away: %v; want %d shards unreached", err, len(lost)+1)
	}
	if len(stats) != 2 || stats[0].Queue.Name != "outages" || len(stats[0].Shards) != len(healthy) ||
		stats[1].Queue.Name != single || len(stats[1].Shards) != 0 {
		t.Errorf("statistics of all queues while the list is away: %+v", stats)
	}
	if _, err := inspect.New(
		redis.New(o.connect(), redis.Options{}), inspect.Options{},
	).Stats(t.Context()); err == nil {
		t.Error("a store that has never seen the list has statistics of all queues")
	}
}

// looksBesideAnOutage puts entries of every kind into each shard, lets the outage begin, and looks.
func (o *outage) looksBesideAnOutage(lost, healthy []int, begin func()) {
	o.Helper()
	store := redis.New(o.connect(), redis.Options{})
	o.fill(store)
	started := redis.New(o.connect(), redis.Options{}) // its client knows the Cluster but has not called it
	must(o, started.Ping(o.Context()))
	begin()
	for name, s := range map[string]*redis.Store{"that has worked": store, "that looks for the first time": started} {
		for what, look := range looks(s) {
			o.looksSoon(what+" of a store "+name, lost, healthy, look)
		}
	}
	verdict, err := inspect.New(store, inspect.Options{}).Why(o.Context(), "outages", idOfShard(healthy[0]))
	if err != nil || verdict.Found.Queued == nil {
		o.Errorf("Why of a job of a shard that is reached: %+v, %v", verdict, err)
	}
}

// fill puts a job and a dead letter into each shard.
func (o *outage) fill(store *redis.Store) {
	o.Helper()
	_, err := store.Declare(o.Context(), ports.DeclareRequest{Queue: "outages", Shards: outageShards})
	must(o, err)
	for i, shard := range core.Shards("outages", outageShards) {
		o.mustPush(store, core.Entry{ID: idOfShard(i)})
		o.mustPush(store, core.Entry{ID: buriedIDOfShard(i)})
		_, err = store.Bury(o.Context(), ports.JobStep{Shard: shard, IDs: []string{buriedIDOfShard(i)}})
		must(o, err)
	}
}

// muchTooLate is about when a look ends that waits for a hanging server, since its client waits for
// the reply again and again. A look that does not wait takes a second or two, even on a busy
// machine.
const muchTooLate = 20 * time.Second

// looksSoon checks that a look has the entries of the shards that it reaches, names the others,
// and does not wait for the lost ones. On a busy machine it may also miss healthy shards whose
// server is later than another, but not each time.
func (o *outage) looksSoon(what string, lost, healthy []int, look func(context.Context) (int, []core.Shard, error)) {
	o.Helper()
	for first := time.Now(); ; {
		began := time.Now()
		n, missing, err := look(o.Context())
		took := time.Since(began)
		if o.Logf("%s: %d entries without %v: %v", what, n, missing, took); err != nil ||
			n+len(missing) != outageShards || n == 0 || took > muchTooLate {
			o.Fatalf("%s: %d entries without %v (%v) after %v, want %d without %v, soon",
				what, n, missing, err, took, len(healthy), lost)
		}
		for _, i := range lost {
			if !slices.Contains(missing, core.Shard{Queue: "outages", Index: i}) {
				o.Fatalf("%s does not say that it lacks shard %d: %v", what, i, missing)
			}
		}
		if n == len(healthy) {
			return
		}
		if time.Since(first) > testservers.Patience {
			o.Fatalf("%s has never found more than a part of the healthy shards", what)
		}
	}
}

// A program that starts beside a hanging master, whichever that is, sees the shards of the others
// like any other program.
func TestRedisLooksThatBeginBesideAHungMaster(t *testing.T) {
	tier.Long(t, "waits for a master's outage")
	t.Parallel()
	o := newOutage(t)
	store := redis.New(o.connect(), redis.Options{})
	o.fill(store)
	registry, err := o.cluster.MasterForKey(t.Context(), "skein:queues")
	must(t, err)
	masters := make(map[string]*goredis.Client)
	for i := range outageShards {
		masters[o.master(i).Options().Addr] = o.master(i)
	}
	for addr, failing := range masters {
		lost, healthy := o.divideBy(failing)
		thaw := testservers.Freeze(t, failing)
		for what := range looks(store) {
			o.looksSoon("the first call, "+what, lost, healthy, looks(redis.New(o.connect(), redis.Options{}))[what])
		}
		began := time.Now()
		queues, err := redis.New(o.connect(), redis.Options{}).Queues(t.Context())
		if took := time.Since(began); took > muchTooLate {
			t.Errorf("the list of queues took %v", took)
		}
		if away := addr == registry.Options().Addr; away &&
			(err == nil || !strings.Contains(err.Error(), "list of queues")) || !away && len(queues) != 1 {
			t.Errorf("the list of queues, away %v: %v, %v", away, queues, err)
		}
		thaw()
		o.untilReached(store)
	}
}

// untilReached waits until all shards can be reached.
func (o *outage) untilReached(store *redis.Store) {
	o.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		stats, err := store.Stats(o.Context(), ports.StatsRequest{Queues: []string{"outages"}})
		if err == nil && len(stats[0].Unreached) == 0 {
			return
		}
		if time.Since(began) > testservers.Patience {
			o.Fatalf("shards can't be reached: %+v, %v", stats, err)
		}
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

// looks are calls that look, each of which returns how many entries, or shards, it has found and
// which shards it lacks.
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
