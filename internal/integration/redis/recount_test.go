package redis_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// Recount puts the lists of a shard right from its entries, whatever is wrong with them: members
// that are missing, superfluous, or listed with another score, in the list of those that wait or
// run though they don't.
func TestRedisRecountRepairs(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	key := func(suffix string) string { return "skein:{orders/0}:" + suffix }
	missing := func(suffix, id string) []any { return []any{"zrem", key(suffix), id} }
	wrong := func(suffix, id string) []any { return []any{"zadd", key(suffix), 7, id} }
	times := string(binary.BigEndian.AppendUint64(nil, uint64(frozenNow.UnixMicro())))
	for name, faults := range map[string][][]any{
		"nothing":                     {},
		"a retry that no list runs":   {missing("r", "failed")},
		"a retry in no list":          {missing("rt", "failed"), missing("ri", "failed"), missing("rc", "failed")},
		"a retry with another time":   {wrong("rt", "failed")},
		"a retry with another count":  {wrong("rc", "failed")},
		"a fresh job among retries":   {wrong("rt", "plain"), wrong("ri", "plain"), wrong("rc", "plain")},
		"an id that is not listed":    {missing("i", "plain")},
		"an id that is nobody's":      {wrong("i", "never"), wrong("r", "never"), wrong("w", "never"), wrong("rt", "never")},
		"a retry that is nobody's":    {wrong("ri", "never"), wrong("rc", "never")},
		"a job in no list":            {missing("r", "plain")},
		"a waiting job in no list":    {missing("w", "a")},
		"a waiting job that runs":     {missing("w", "a"), {"zadd", key("r"), frozenNow.UnixMicro(), "a"}},
		"a job that waits for nobody": {missing("r", "plain"), {"zadd", key("w"), frozenNow.UnixMicro(), "plain"}},
		"a dead letter in no list":    {missing("xt", "dead"), missing("xi", "dead")},
		"a dead letter of nobody":     {wrong("xt", "never"), wrong("xi", "never")},
		"a job that seems alone":      {{"hset", key("l"), "alone", 1}},
		"a dead letter in no group":   {missing("g:buried by hand", "dead"), wrong("g:buried by hand", "gone")},
		"a dead letter in two groups": {wrong("g:bad", "dead"), wrong("g:never", "dead"), {"hset", key("xg"), "never", "?"}},
		"a group of nobody":           {{"hset", key("xg"), "never", strings.Repeat("\x00\x01", 12)}},
		"a group that is not counted": {{"hdel", key("xg"), "bad"}},
		"a group of no number":        {{"hset", key("xg"), "bad", "?"}},
		"a group of another number":   {{"hset", key("xg"), "bad", "\x00\x00\x00\x00\x00\x00\x00\x09" + times + times}},
	} {
		t.Run(name, func(t *testing.T) {
			must(t, client.FlushAll(t.Context()).Err())
			w := newWorker(t, client, true)
			before := allContents(t, client)
			stats, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			must(t, err)
			for _, fault := range faults {
				must(t, client.Do(t.Context(), fault...).Err())
			}
			damaged, err := w.store.Stats(t.Context(), ports.StatsRequest{Queues: []string{"orders"}})
			must(t, err)
			for range 2 {
				reply, err := kit.Recounted(t.Context(), w.store, w.shard)
				must(t, err)
				if diff := cmp.Diff(damaged[0].Counts, reply.Before); diff != "" {
					t.Errorf("the counts before (-Stats +Recount):\n%s", diff)
				}
				if diff := cmp.Diff(stats[0].Counts, reply.After); diff != "" {
					t.Errorf("the counts after (-Stats +Recount):\n%s", diff)
				}
				damaged = stats
			}
			if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
				t.Errorf("what is left of the fault (-before +after):\n%s", diff)
			}
		})
	}
}

// A recount in many steps puts a shard right whose lists and counts are wrong all over, while
// others push, claim, settle, bury, revive and purge between the steps.
func TestRedisRecountInStepsBesideWork(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for seed := range uint64(6) {
		must(t, client.FlushAll(t.Context()).Err())
		w := &stepped{worker: newWorker(t, client, true), random: rand.New(rand.NewPCG(seed, 1))}
		w.store = redis.New(client,
			redis.Options{Clock: func() time.Time { return frozenNow }, Logger: slog.New(slog.DiscardHandler)})
		for range 60 {
			w.work()
		}
		w.disarrange()
		steps := 1
		_, err := kit.RecountedAround(t.Context(), w.store, ports.RecountRequest{Shard: w.shard, Limit: 40}, func() {
			steps++
			w.work()
		})
		must(t, err)
		if steps < 20 {
			t.Errorf("seed %d: %d steps, want many", seed, steps)
		}
		w.agrees(fmt.Sprintf("seed %d, %d steps", seed, steps))
		w.work()
		w.agrees(fmt.Sprintf("seed %d, after more work", seed))
	}
}

// stepped is a shard whose jobs change at random.
type stepped struct {
	*worker
	random *rand.Rand
}

func (w *stepped) id() string { return fmt.Sprintf("id-%03d", w.random.IntN(500)) }

func (w *stepped) ids(n int) (ids []string) {
	for range n {
		ids = append(ids, w.id())
	}
	return ids
}

func (w *stepped) work() {
	w.t.Helper()
	var entries []core.Entry
	for _, id := range w.ids(12) {
		entries = append(entries, one(id, float64(w.random.IntN(3))))
	}
	w.must(w.push(entries...))
	var settled []core.Settlement
	for _, id := range slices.Sorted(maps.Keys(w.claims)) {
		o := core.Outcome{Kind: core.Done}
		switch w.random.IntN(4) {
		case 0:
			o = failure()
		case 1:
			o = core.Outcome{Kind: core.Buried, Error: "bad", Group: fmt.Sprintf("group %d", w.random.IntN(8))}
		case 2:
			continue
		}
		settled = append(settled, w.settle(id, o)...)
		delete(w.claims, id)
	}
	w.must(w.turn(ports.TurnRequest{Want: 6, Settlements: settled}))
	w.must(w.bury(w.ids(3)...))
	w.must(w.purge(w.dead(w.ids(6)...)))
	_, err := w.store.Revive(w.t.Context(), w.dead(w.ids(10)...))
	w.must(err)
}

// disarrange takes ids out of lists, puts others in, and miscounts groups.
func (w *stepped) disarrange() {
	w.t.Helper()
	do := func(args ...any) { w.t.Helper(); w.must(w.client.Do(w.t.Context(), args...).Err()) }
	lists := []string{"r", "w", "rt", "ri", "rc", "i", "xt", "xi"}
	for _, name := range w.client.HKeys(w.t.Context(), key("xg")).Val() {
		lists = append(lists, "g:"+name)
		switch w.random.IntN(3) {
		case 0:
			do("hdel", key("xg"), name)
		case 1:
			do("hset", key("xg"), name, strings.Repeat("\x00", 7)+"\x05"+strings.Repeat("\x00", 16))
		}
	}
	for _, list := range lists {
		for range 30 {
			do("zrem", key(list), w.id())
			do("zadd", key(list), w.random.IntN(1000), w.id())
		}
		for i := range 10 {
			do("zadd", key(list), i, fmt.Sprintf("nobody-%d", w.random.IntN(100)))
		}
	}
}

// agrees checks that each list has the ids that it should have, and no others, and that the counts
// of groups are right.
func (w *stepped) agrees(what string) {
	w.t.Helper()
	queued, failed, waiting, running := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	claimed := w.client.HGetAll(w.t.Context(), key("c")).Val()
	for id, packed := range w.client.HGetAll(w.t.Context(), key("j")).Val() {
		queued[id] = true
		if _, ok := claimed[id]; ok {
			waiting[id] = true
		} else {
			running[id] = true
		}
		if packedRetry(packed) >= 0 {
			failed[id] = true
		}
	}
	dead, groups := map[string]bool{}, map[string]map[string]bool{}
	for id, packed := range w.client.HGetAll(w.t.Context(), key("x")).Val() {
		dead[id] = true
		name := packed[1 : 1+packed[0]]
		if groups[name] == nil {
			groups[name] = map[string]bool{}
		}
		groups[name][id] = true
	}
	want := map[string]map[string]bool{
		"r":  running,
		"w":  waiting,
		"rt": failed,
		"ri": failed,
		"rc": failed,
		"i":  queued,
		"xt": dead,
		"xi": dead,
	}
	counted := map[string]int{}
	for name, ids := range groups {
		want["g:"+name], counted[name] = ids, len(ids)
	}
	for list, ids := range want {
		members := w.client.ZRange(w.t.Context(), key(list), 0, -1).Val()
		got := map[string]bool{}
		for _, id := range members {
			got[id] = true
		}
		if diff := cmp.Diff(ids, got); diff != "" {
			w.t.Errorf("%s: the list %s (-want +got):\n%s", what, list, diff)
		}
	}
	stored := map[string]int{}
	for name, value := range w.client.HGetAll(w.t.Context(), key("xg")).Val() {
		stored[name] = int(binary.BigEndian.Uint64([]byte(value)))
	}
	if diff := cmp.Diff(counted, stored); diff != "" {
		w.t.Errorf("%s: the counts of groups (-want +got):\n%s", what, diff)
	}
}

// packedRetry returns the RetryCount of a packed job, as lua/lib/packed.lua has it.
func packedRetry(packed string) int32 {
	const first, tags, failed = 8, 16, 32
	flags, at := packed[0], 1+[...]int{7, 8, 0, 0}[packed[0]&3]
	if flags&first != 0 {
		at += 8
	}
	if flags&tags != 0 {
		at += 2 + int(binary.BigEndian.Uint16([]byte(packed[at:])))
	}
	if flags&failed == 0 {
		return -1
	}
	return int32(binary.BigEndian.Uint32([]byte(packed[at:])))
}

// pushJobs pushes n jobs.
func (w *worker) pushJobs(n int) {
	w.t.Helper()
	var entries []core.Entry
	for i := range n {
		entries = append(entries, one(fmt.Sprintf("id-%04d", i), 1))
	}
	for part := range slices.Chunk(entries, 500) {
		w.must(w.push(part...))
	}
}

// A step visits about as many entries as its Limit, however many the shard has; all steps together
// count each.
func TestRedisRecountStepIsBounded(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	const jobs, limit = 3_000, 100
	w.pushJobs(jobs)
	counted, steps := 0, 0
	for r := (ports.RecountRequest{Shard: w.shard, Limit: limit}); steps == 0 || r.After != ""; steps++ {
		reply, err := w.store.Recount(t.Context(), r)
		must(t, err)
		if reply.Counted > 2*limit {
			t.Errorf("step %d has counted %d entries, want about %d", steps, reply.Counted, limit)
		}
		counted += reply.Counted
		r.After = reply.Next
	}
	if counted < jobs || steps < jobs/limit {
		t.Errorf("%d steps have counted %d entries, want at least %d in at least %d", steps, counted, jobs, jobs/limit)
	}
}

// Redis returns a small sorted set whole, whatever COUNT is. A step of a recount still reads 8 MiB
// of the records in one, and few more. The steps together correct the records that they meet, even
// if some have left the set between them.
func TestRedisRecountStepReadsFewLargeRecords(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	const jobs, size, most = 100, 512 << 10, 8<<20 + 16*(512<<10)
	for i := range jobs {
		e := one(fmt.Sprintf("id-%03d", i), float64(i%7))
		e.Payload.Data = make([]byte, size)
		w.must(w.push(e))
	}
	must(t, client.ZRem(t.Context(), key("r"), "id-098").Err())
	must(t, client.ZAdd(t.Context(), key("r"), goredis.Z{Score: 5, Member: "nobody"}).Err())
	steps, ofReady := 0, 0
	for r := (ports.RecountRequest{Shard: w.shard}); steps == 0 || r.After != ""; steps++ {
		reply, err := w.store.Recount(t.Context(), r)
		must(t, err)
		r.After = reply.Next
		if strings.Contains(reply.Next, " r ") {
			ofReady++
		}
		// The list loses an id that the recount has come past, and one that it has not.
		must(t, discarded(t, client, fmt.Sprintf("id-%03d", steps), fmt.Sprintf("id-%03d", 95-steps)))
	}
	if left := client.HLen(t.Context(), key("j")).Val(); ofReady < int(left*size/most) {
		t.Errorf("%d of %d steps end in the list of ready jobs, "+
			"which has %d of %d bytes, want at most %d bytes in each",
			ofReady, steps, left, size, most)
	}
	(&stepped{worker: w}).agrees("after the recount")
}

// discarded takes ids out of a shard's records and lists, as a delete does.
func discarded(t *testing.T, client *goredis.Client, ids ...string) error {
	for _, id := range ids {
		for _, list := range []string{"r", "i"} {
			if err := client.ZRem(t.Context(), key(list), id).Err(); err != nil {
				return err
			}
		}
		if err := client.HDel(t.Context(), key("j"), id).Err(); err != nil {
			return err
		}
	}
	return nil
}

// A place of another shard, and one that no scan has, is refused.
func TestRedisRecountRefusesAPlaceOfAnotherShard(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	w.must(w.declare("others"))
	w.pushJobs(1_000)
	r := ports.RecountRequest{Shard: w.shard, Limit: 20}
	reply, err := w.store.Recount(t.Context(), r)
	must(t, err)
	if reply.Next == "" {
		t.Fatal("the first step is all of the recount")
	}
	other := ports.RecountRequest{Shard: core.Shard{Queue: "others"}, After: reply.Next}
	if _, err = w.store.Recount(t.Context(), other); !errors.Is(err, ports.ErrInvalidRequest) {
		t.Errorf("the place of another shard gave %v, want ErrInvalidRequest", err)
	}
	place := strings.Fields(reply.Next)
	for _, cursor := range []string{"18446744073709551616", strings.Repeat("9", 30)} {
		place[len(place)-2] = cursor
		r.After = strings.Join(place, " ") + " "
		if _, err = w.store.Recount(t.Context(), r); !errors.Is(err, ports.ErrInvalidRequest) {
			t.Errorf("a cursor of %s gave %v, want ErrInvalidRequest", cursor, err)
		}
	}
}

// With many claims, none runs alone. So a recount that does not read them all corrects a lease
// that contradicts this, or else nothing would be claimed any more.
func TestRedisRecountOfManyClaimsFreesTheShard(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	w.pushJobs(1_300)
	for range 6 {
		w.must(w.turn(ports.TurnRequest{Want: 200}))
	}
	if n := client.HLen(t.Context(), key("c")).Val(); n <= 1_000 {
		t.Fatalf("%d jobs are claimed, want more than 1000", n)
	}
	must(t, client.HSet(t.Context(), key("l"), "alone", 1).Err())
	_, err := kit.Recounted(t.Context(), w.store, w.shard)
	must(t, err)
	if alone := client.HGet(t.Context(), key("l"), "alone").Val(); alone != "0" {
		t.Errorf("the lease says that %s claims run alone, want 0", alone)
	}
	before := client.HLen(t.Context(), key("c")).Val()
	w.must(w.turn(ports.TurnRequest{Want: 5}))
	if n := client.HLen(t.Context(), key("c")).Val() - before; n != 5 {
		t.Errorf("after the recount %d jobs were claimed, want 5", n)
	}
}

// The place of a scan means nothing to another server, such as a promoted replica. A recount that
// meets such a place begins its part anew, so that it does not miss records that the server has
// elsewhere.
func TestRedisRecountGoesOnAfterAFailover(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	w := newWorker(t, client, false)
	const jobs = 3_000
	w.pushJobs(jobs)
	r := ports.RecountRequest{Shard: w.shard, Limit: 100}
	reply, err := w.store.Recount(t.Context(), r)
	must(t, err)
	of, place := key("m")+" ", strings.Fields(reply.Next)
	place[1] = strings.Repeat("0", 40)
	r.After = strings.Join(place, " ") + " "
	if !strings.HasPrefix(r.After, of) {
		t.Fatalf("the place is %q, want one of %q", reply.Next, of)
	}
	reply, err = kit.RecountedAround(t.Context(), w.store, r, func() {})
	must(t, err)
	if reply.Counted < jobs {
		t.Errorf("%d entries are counted on the new server, want at least %d", reply.Counted, jobs)
	}
}

// The error names a key that another program has overwritten, with the cure, and the cure helps.
func TestRedisRecountNamesAKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	client := testservers.OwnRedis(t).(*goredis.Client)
	for _, suffix := range []string{
		"m", "j", "r", "w", "c", "k", "l", "t", "rt", "ri", "rc", "i", "x", "xt", "xi", "xm", "xg", "q", "g:bad", "",
	} {
		must(t, client.FlushAll(t.Context()).Err())
		w := newWorker(t, client, true)
		name, command := key(suffix), []any{"set", key(suffix), "text"}
		switch suffix {
		case "":
			name = "skein:queues"
			command[1] = name
		case "m":
			command = []any{"hset", name, "a", "b"}
		}
		must(t, client.Del(t.Context(), name).Err())
		must(t, client.Do(t.Context(), command...).Err())
		before := allContents(t, client)
		_, err := kit.Recounted(t.Context(), w.store, w.shard)
		if !errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "the key "+name+" is not a ") ||
			!strings.Contains(err.Error(), "delete or rename it") {
			t.Errorf("with another type of %s a recount gave %v", name, err)
		}
		if diff := cmp.Diff(before, allContents(t, client)); diff != "" {
			t.Errorf("a recount that %s stopped has changed something (-before +after):\n%s", name, diff)
		}
		must(t, client.Del(t.Context(), name).Err())
		if _, err = kit.Recounted(t.Context(), w.store, w.shard); err != nil {
			t.Errorf("once %s was deleted a recount gave %v", name, err)
		}
	}
}
