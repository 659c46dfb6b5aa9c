package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// getPipelines counts the pipelines that begin with GET.
type getPipelines struct{ atomic.Int64 }

func (*getPipelines) DialHook(next goredis.DialHook) goredis.DialHook { return next }

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
	if row := records(); row.Status != ports.CheckOK ||
		row.Value != "all 600 records of queues and shards can be read" {
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

// A shard that has lost its lease record has lost its counts too, which nothing else shows. Shards
// that a server which starts has not acquired yet have no such record either.
func TestRedisALostLeaseIsReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ago  time.Duration
		want ports.CheckStatus
	}{
		"served for long": {10 * time.Minute, ports.CheckWarn},
		"served since":    {0, ports.CheckOK},
	} {
		t.Run(name, func(t *testing.T) {
			client := testservers.OwnRedis(t).(*goredis.Client)
			store := redis.New(client, redis.Options{Clock: func() time.Time { return time.Now().Add(-tt.ago) }})
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 3})
			must(t, err)
			for _, shard := range core.Shards("orders", 3) {
				_, err := store.Acquire(t.Context(), ports.AcquireRequest{
					Shard: shard, Shards: 3, Generation: 1, Owner: "n", Attempt: 1, TTL: time.Minute,
				})
				must(t, err)
			}
			if row := kit.Named(kit.CheckedServers(t, store)[""], "records"); row.Status != ports.CheckOK {
				t.Errorf("the row of a healthy queue is %+v", row)
			}
			must(t, client.Del(t.Context(), "skein:{orders/1}:l").Err())
			row := kit.Named(kit.CheckedServers(t, store)[""], "records")
			if row.Status != tt.want || row.Refuses ||
				strings.Contains(row.Value, "orders/1 has no lease record") != (tt.want == ports.CheckWarn) {
				t.Errorf("the row is %+v, want status %v", row, tt.want)
			}
		})
	}
}

// A queue that has lost its record in the list is found if a server has announced it: the list does
// not name it. One that was forgotten is not lost.
func TestRedisAQueueWithoutARecordIsReported(t *testing.T) {
	t.Parallel()
	for name, client := range map[string]goredis.UniversalClient{
		"a server":  testservers.OwnRedis(t),
		"a Cluster": testservers.OwnRedisCluster(t),
	} {
		store := redis.New(client, redis.Options{})
		records := func() ports.Check {
			t.Helper()
			rows, err := store.Check(t.Context())
			must(t, err)
			return rows[len(rows)-1]
		}
		for _, queue := range []string{"orders", "forgotten"} {
			_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 2})
			must(t, err)
		}
		_, err := store.Announce(t.Context(), ports.AnnounceRequest{
			Node: ports.Node{Owner: "w", Name: "w", Lanes: 1, Queues: []string{"forgotten", "never", "orders"}},
			TTL:  time.Hour,
		})
		must(t, err)
		must(t, store.Forget(t.Context(), "forgotten"))
		if row := records(); row.Status != ports.CheckOK {
			t.Errorf("%s: the row is %+v, want all in order", name, row)
		}
		must(t, client.HDel(t.Context(), "skein:queues", "orders").Err())
		if row := records(); row.Status != ports.CheckWarn || row.Refuses ||
			row.Value != "the record of the queue orders is lost, but its shards have theirs" {
			t.Errorf("%s: the row is %+v, want a warning of the queue orders", name, row)
		}
		must(t, client.Del(t.Context(), "skein:{orders/1}:m").Err())
		want := "the record of orders/1 is lost; " +
			"the record of the queue orders is lost, and 1 of its 2 shards have lost theirs"
		if row := records(); row.Status != ports.CheckFail || !row.Refuses || row.Value != want ||
			!strings.Contains(row.Advice, "skein repair recount") {
			t.Errorf("%s: the row is %+v, want it to fail and to name orders/1", name, row)
		}
		_, err = inspect.New(store, inspect.Options{}).Recount(t.Context(), "orders", nil)
		must(t, err)
		if row := records(); row.Status != ports.CheckOK {
			t.Errorf("%s: after the recount the row is %+v, want all in order", name, row)
		}
	}
}

// A key of another type in a shard is found in each of the shard's keys, and in each shard of a
// Cluster.
func TestRedisKeysOfAnotherTypeAreReported(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedisCluster(t)
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 4})
	must(t, err)
	for i, key := range strings.Fields("j r w c i t rt ri rc x xt xi xm xg l k q") {
		name := fmt.Sprintf("skein:{orders/%d}:%s", i%4, key)
		must(t, client.Set(t.Context(), name, "x", 0).Err())
		rows, err := store.Check(t.Context())
		must(t, err)
		row := rows[len(rows)-1]
		if refuses := !strings.Contains(" x xt xi xm xg k q ", " "+key+" "); row.Status != ports.CheckFail ||
			row.Refuses != refuses ||
			!strings.HasPrefix(row.Value, fmt.Sprintf("the key %s of orders/%d is not a ", name, i%4)) {
			t.Errorf("%s: the row is %+v; want it to fail, and to refuse pushes: %v", name, row, refuses)
		}
		must(t, client.Del(t.Context(), name).Err())
	}
}

// heldSizes holds the pipelines that read the size of a hash of a shard, until their contexts end.
type heldSizes struct{ shard string }

func (heldSizes) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (heldSizes) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook { return next }

func (h heldSizes) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []goredis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "hlen" && strings.Contains(fmt.Sprint(cmd.Args()...), h.shard) {
				<-ctx.Done()
				for _, cmd := range cmds {
					cmd.SetErr(ctx.Err())
				}
				return ctx.Err()
			}
		}
		return next(ctx, cmds)
	}
}

// If there is no time left for the types of all keys, the row names the lost records and the keys
// that were found, and the number of shards that were not looked at.
func TestRedisRecordsAreReadBeforeTypes(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	looking := goredis.NewClient(client.Options())
	defer looking.Close()
	looking.AddHook(heldSizes{"{orders/298}"})
	store := redis.New(looking, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 300})
	must(t, err)
	check := func(status ports.CheckStatus, want string) {
		t.Helper()
		rows, err := store.Check(t.Context())
		must(t, err)
		if row := rows[len(rows)-1]; row.Status != status || row.Value != want {
			t.Errorf("the row is %+v, want %v, %s", row, status, want)
		}
	}
	check(ports.CheckUnknown,
		"all 301 records of queues and shards can be read; types of the keys of 44 shards not looked at")
	must(t, client.Del(t.Context(), "skein:{orders/299}:m").Err())
	must(t, client.Set(t.Context(), "skein:{orders/3}:j", "x", 0).Err())
	check(ports.CheckFail, "the record of orders/299 is lost; the key skein:{orders/3}:j of orders/3 is not a hash; "+
		"types of the keys of 43 shards not looked at")
}

// A shard whose master did not answer at a pause, resume or change of the merge rule has the former
// record of its queue. The check names it, and a Recount completes the call.
func TestRedisAShardThatMissedAChangeIsReported(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	cutting := goredis.NewClient(client.Options())
	defer cutting.Close()
	cuts := new(cutShards)
	cutting.AddHook(cuts)
	store := redis.New(cutting, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 2})
	must(t, err)
	missed := core.Shard{Queue: "orders", Index: 1}
	records := func() ports.Check {
		t.Helper()
		rows, err := store.Check(t.Context())
		must(t, err)
		return rows[len(rows)-1]
	}
	var entries []core.Entry
	for i := range 20 { // some of them are in each shard
		entries = append(entries, core.Entry{ID: fmt.Sprint(i)})
	}
	_, err = store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 2, Generation: 1, Entries: entries})
	must(t, err)
	woken, err := store.Wakeups(t.Context(), []core.Shard{missed})
	must(t, err)
	s := severable{store, cuts, "skein:"}
	for name, change := range map[string]func() error{
		"a pause":  func() error { return store.Pause(t.Context(), "orders") },
		"a resume": func() error { return store.Resume(t.Context(), "orders") },
		"a merge rule": func() error {
			return store.SetMerge(t.Context(),
				ports.SetMergeRequest{Queue: "orders", Merge: core.MergeRule{Stays: core.Highest, Keep: 1}})
		},
	} {
		mend := s.Sever(missed)
		if err := change(); err == nil {
			t.Errorf("%s that did not reach %v gave no error", name, missed)
		}
		mend()
		want := "orders/1 has missed the last pause, resume or merge rule of its queue"
		if row := records(); row.Status != ports.CheckWarn || row.Refuses || row.Value != want {
			t.Errorf("after %s the row is %+v, want a warning of %v", name, row, missed)
		}
		for len(woken) > 0 {
			<-woken
		}
		_, err := inspect.New(store, inspect.Options{}).Recount(t.Context(), "orders", nil)
		must(t, err)
		if row := records(); row.Status != ports.CheckOK {
			t.Errorf("after %s and a Recount the row is %+v, want all in order", name, row)
		}
		queue, shard :=
			client.HGet(t.Context(), "skein:queues", "orders").Val(),
			client.Get(t.Context(), "skein:{orders/1}:m").Val()
		if shard == "" || queue != shard+" +" {
			t.Errorf("after %s and a Recount the queue's record is %q and the shard's %q", name, queue, shard)
		}
		if strings.HasPrefix(shard, "0 0 ") {
			<-woken // its job can be claimed
		}
	}
}

// A failover can lose the last changes of a queue's record and keep those of its shards. The check
// names such a queue. A Recount restores its record, and so does the next change, which would else
// write the former state over that of the shards.
func TestRedisAQueueThatLostChangesIsRestored(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	recount := func(queue string) error {
		_, err := inspect.New(store, inspect.Options{}).Recount(t.Context(), queue, nil)
		return err
	}
	change := func(queue string) error {
		return store.SetMerge(t.Context(),
			ports.SetMergeRequest{Queue: queue, Merge: core.MergeRule{Stays: core.Highest, Keep: 1}})
	}
	for queue, mend := range map[string]func(string) error{
		"recount-1": recount,
		"recount-2": recount,
		"change-1":  change,
		"change-2":  change,
	} {
		lost := int(queue[len(queue)-1] - '0')
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 2})
		must(t, err)
		must(t, store.Pause(t.Context(), queue))
		must(t, store.Resume(t.Context(), queue))
		records := []string{client.HGet(t.Context(), "skein:queues", queue).Val()}
		for range lost {
			must(t, store.Pause(t.Context(), queue))
			records = append(records, client.HGet(t.Context(), "skein:queues", queue).Val())
		}
		must(t, client.HSet(t.Context(), "skein:queues", queue, records[0]).Err())

		rows, err := store.Check(t.Context())
		must(t, err)
		want := fmt.Sprintf("the queue %[1]s has lost a pause, resume or merge rule that %[1]s/0 has", queue)
		if row := rows[len(rows)-1]; row.Status != ports.CheckWarn || row.Refuses ||
			!strings.HasPrefix(row.Value, want) {
			t.Errorf("the row is %+v, want a warning of the queue", row)
		}
		must(t, mend(queue))
		record := client.HGet(t.Context(), "skein:queues", queue).Val()
		if !strings.HasPrefix(record, "0 1 ") {
			t.Errorf("the record of %s is %q, want that it is paused still", queue, record)
		}
		if changed := strings.Contains(record, "="); changed != strings.HasPrefix(queue, "change") {
			t.Errorf("the record of %s is %q", queue, record)
		}
		for _, shard := range core.Shards(queue, 2) {
			if own := client.Get(t.Context(), fmt.Sprintf("skein:{%v}:m", shard)).Val(); record != own+" +" {
				t.Errorf("the record of %s is %q, and that of %v %q", queue, record, shard, own)
			}
		}
	}
}

// A change that reaches no shard, since all have a later record, is no success if the queue's
// record can't be read again.
func TestRedisAChangeThatReachesNoShardFails(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	lost := client.HGet(t.Context(), "skein:queues", "orders").Val()
	for range 2 {
		must(t, store.Resume(t.Context(), "orders"))
	}
	must(t, client.HSet(t.Context(), "skein:queues", "orders", lost).Err())
	blind := goredis.NewClient(client.Options())
	defer blind.Close()
	blind.AddHook(&beforeQueueRecord{err: errCutOff})
	if err := redis.New(blind, redis.Options{}).Pause(t.Context(), "orders"); err == nil {
		t.Error("the pause gave no error")
	}
}

// A queue that has lost its last declaration does not give its shards the former layout.
func TestRedisAPauseKeepsALaterLayout(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 2})
	must(t, err)
	lost := client.HGet(t.Context(), "skein:queues", "orders").Val()
	must(t, store.Forget(t.Context(), "orders"))
	_, err = store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 4})
	must(t, err)
	must(t, client.HSet(t.Context(), "skein:queues", "orders", lost).Err())
	before := client.Get(t.Context(), "skein:{orders/0}:m").Val()
	if err := store.Pause(t.Context(), "orders"); !errors.Is(err, ports.ErrShardCountMismatch) {
		t.Errorf("a pause gives %v, want ErrShardCountMismatch", err)
	}
	if _, err := inspect.New(store, inspect.Options{}).Recount(t.Context(), "orders", nil); err == nil {
		t.Error("a Recount by the former layout gives no error")
	}
	if after := client.Get(t.Context(), "skein:{orders/0}:m").Val(); after != before {
		t.Errorf("the record of a shard was %q and is %q", before, after)
	}
}

// A queue that has lost a declaration with another Same does not give its shards the former rule.
func TestRedisAPauseKeepsALaterSame(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t)
	store := redis.New(client, redis.Options{})
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	lost := client.HGet(t.Context(), "skein:queues", "orders").Val()
	must(t, store.Forget(t.Context(), "orders"))
	_, err = store.Declare(t.Context(),
		ports.DeclareRequest{Queue: "orders", Shards: 1, Merge: core.MergeRule{Same: core.SamePush}})
	must(t, err)
	must(t, client.HSet(t.Context(), "skein:queues", "orders", lost).Err())
	before := client.Get(t.Context(), "skein:{orders/0}:m").Val()
	if err := store.Pause(t.Context(), "orders"); !errors.Is(err, ports.ErrQueueMismatch) {
		t.Errorf("a pause gives %v, want ErrQueueMismatch", err)
	}
	if _, err := inspect.New(store, inspect.Options{}).Recount(t.Context(), "orders", nil); !errors.Is(
		err, ports.ErrQueueMismatch,
	) {
		t.Errorf("a Recount gives %v, want ErrQueueMismatch", err)
	}
	if after := client.Get(t.Context(), "skein:{orders/0}:m").Val(); after != before {
		t.Errorf("the record of the shard was %q and is %q", before, after)
	}
}
