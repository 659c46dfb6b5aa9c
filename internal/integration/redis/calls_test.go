package redis_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// scriptCall is a call that runs one of the store's scripts, for tests that
// check a rule for every script.
type scriptCall struct {
	name string
	// script is the script's file below adapters/redis/lua.
	script string
	// filled makes the call in a shard that holds something of every kind. Otherwise the shard has
	// two jobs, one of them claimed.
	filled bool
	// do is the call.
	do func(*worker) error
}

// worker is a store with one shard, whose lease it holds.
type worker struct {
	t      *testing.T
	client goredis.UniversalClient
	store  *redis.Store
	shard  core.Shard
	lease  ports.Lease
	number int64
	claims map[string]core.Claim
}

var frozenNow = time.UnixMicro(1_700_000_000_000_000)

// openFrozen returns a store whose clock stands still.
func openFrozen(client goredis.UniversalClient) *redis.Store {
	return redis.New(client, redis.Options{Clock: func() time.Time { return frozenNow }})
}

// newWorker declares a queue and fills its shard.
func newWorker(t *testing.T, client goredis.UniversalClient, filled bool) *worker {
	t.Helper()
	w := &worker{
		t: t, client: client, store: openFrozen(client),
		shard: core.Shard{Queue: "orders"}, claims: map[string]core.Claim{},
	}
	w.must(w.declare("orders"))
	w.must(w.push(one("a", 1), one("b", 1)))
	w.must(w.acquire("test", 1))
	w.must(w.turn(ports.TurnRequest{Want: 1}))
	if filled {
		w.fill()
	}
	return w
}

// fill adds a failed job, one that is claimed in part and parked, one of many
// payloads, dead letters of one payload, of many, and of one that is left of many,
// a claimed job whose id is dead, a job and a dead letter of many payloads without Metas, a
// cancel, a history, a schedule that is due and one that has no tick, and records of done jobs, with
// a result and without.
func (w *worker) fill() {
	w.t.Helper()
	w.must(w.push(one("done", 1), one("past", 1)))
	w.must(w.turn(ports.TurnRequest{Want: 3}))
	w.must(w.turn(ports.TurnRequest{
		Settlements: append(w.done("done", "result"), w.done("past", "")...),
		Keep:        core.KeepPast{Age: time.Hour},
	}))
	w.must(w.push(one("failed", 1), one("buried", 1)))
	w.must(w.turn(ports.TurnRequest{Want: 3}))
	w.must(w.recorded(1, 1, 2))
	w.must(w.turn(ports.TurnRequest{Settlements: w.settle("failed", failure())}))
	w.must(w.turn(ports.TurnRequest{
		Settlements: w.settle("buried", core.Outcome{Kind: core.Buried, Error: "bad", Group: "bad"}),
	}))
	w.must(w.push(many("dead", 20)...))
	w.must(w.bury("dead"))
	w.must(w.push(many("rest", 20)...))
	w.must(w.bury("rest"))
	w.must(w.purge(w.some("rest", 1, 19)))
	w.must(w.push(many("dead", 21)[20]))
	w.must(w.turn(ports.TurnRequest{Want: 1}))
	w.must(w.push(many("cut", 3)...))
	w.must(w.turn(ports.TurnRequest{Want: 1, PerJob: 1}))
	w.must(w.push(many("large", 20)...))
	w.must(w.push(one("a", 2)))
	w.must(w.push(one("plain", 1)))
	w.must(w.push(untagged("gone", 20)...))
	w.must(w.bury("gone"))
	w.must(w.push(untagged("whole", 20)...))
	w.must(w.cancel("b"))
	w.must(w.changeSchedules(created(scheduled("a", "due", frozenNow)),
		created(scheduled("idle", "never", time.Time{}))))
}

func failure() core.Outcome {
	return core.Outcome{Kind: core.Failed, Error: "boom", OwnDelay: true, Delay: time.Hour}
}

// one is an entry with a payload that its score names.
func one(id string, score float64) core.Entry {
	return core.Entry{ID: id, Payload: core.Payload{Data: fmt.Appendf(nil, "p%v", score), Score: score}}
}

// many are entries of one id with payloads that have a Meta; more than eight do
// not fit in a record.
func many(id string, n int) []core.Entry {
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = one(id, float64(i))
		entries[i].Meta = []byte("meta")
	}
	return entries
}

// untagged is like many, without Metas.
func untagged(id string, n int) []core.Entry {
	entries := many(id, n)
	for i := range entries {
		entries[i].Meta = nil
	}
	return entries
}

func (w *worker) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *worker) declare(queue string) error {
	_, err := w.store.Declare(w.t.Context(), ports.DeclareRequest{Queue: queue, Shards: 1, IndexIDs: true})
	return err
}

func (w *worker) push(entries ...core.Entry) error {
	_, err := w.store.Push(w.t.Context(),
		ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
	return err
}

func (w *worker) acquire(owner string, attempt int64) error {
	reply, err := w.store.Acquire(w.t.Context(), ports.AcquireRequest{
		Shard: w.shard, Shards: 1, Generation: 1, Owner: owner, Attempt: attempt, TTL: time.Minute})
	w.lease, w.number = ports.Lease{Shard: w.shard, Owner: owner, Token: reply.Token}, 0
	return err
}

// take takes a grant of each of the limiters with the given keys.
func (w *worker) take(keys ...string) error {
	r := ports.TakeRequest{Queue: "orders"}
	for _, key := range keys {
		r.Takes = append(r.Takes, ports.Take{Key: key, Rate: core.Rate{Count: 1, Per: time.Second, Burst: 9}, Want: 1})
	}
	_, err := w.store.Take(w.t.Context(), r)
	return err
}

// stop stops a limiter.
func (w *worker) stop(key string) error {
	return w.store.Stop(w.t.Context(), ports.StopRequest{Queue: "orders", Key: key, For: time.Minute})
}

// permit has an owner hold the given number of five permits and want one more, unless it holds
// none.
func (w *worker) permit(owner string, hold int) error {
	_, err := w.store.Permit(w.t.Context(), ports.PermitRequest{
		Queue: "orders", Owner: owner, Attempt: 1, Limit: 5, Hold: hold, Want: hold + min(hold, 1), TTL: time.Minute})
	return err
}

// turn sends the next turn and keeps its claims.
func (w *worker) turn(r ports.TurnRequest) error {
	r.Lease, r.Number, r.TTL, r.Node = w.lease, w.number+1, time.Minute, "node"
	reply, err := w.store.Turn(w.t.Context(), r)
	if err != nil {
		return err
	}
	w.number = reply.Last
	for _, c := range reply.Claims {
		w.claims[c.ID] = c
	}
	return nil
}

// settle ends a claimed job.
func (w *worker) settle(id string, o core.Outcome) []core.Settlement {
	w.t.Helper()
	c, ok := w.claims[id]
	if !ok {
		w.t.Fatalf("%s is not claimed", id)
	}
	return []core.Settlement{core.RetryPolicy{MaxRetries: 25, MaxRecoveries: 3}.Settlement(&c, &o, 0)}
}

// done ends a claimed job as done, with a record.
func (w *worker) done(id, result string) []core.Settlement {
	w.t.Helper()
	s, c := w.settle(id, core.Outcome{Kind: core.Done}), w.claims[id]
	s[0].Record(&c, core.Run{Started: core.InstantOf(frozenNow), Node: "node", Result: []byte(result)})
	return s
}

// beginning is a turn that begins jobs, which may be claimed or not.
func (w *worker) beginning(ids ...string) ports.TurnRequest {
	var r ports.TurnRequest
	for _, id := range ids {
		r.Begin = append(r.Begin, core.ClaimRef{ID: id, Receipt: w.claims[id].Receipt})
	}
	return r
}

// recorded records the given number of jobs for minutes of the present hour and of the previous
// one.
func (w *worker) recorded(jobs uint64, minutes ...int) error {
	r := ports.RecordRequest{Owner: "n"}
	for _, minute := range minutes {
		at := core.InstantOf(frozenNow).Minute().Add(-time.Duration(minute) * time.Minute)
		r.Records = append(r.Records, ports.Record{Queue: "orders", Minute: at, Stats: core.Stats{Processed: jobs}})
	}
	return w.store.Record(w.t.Context(), r)
}

// announce announces a node with the given number of lanes.
func (w *worker) announce(lanes int) error {
	n := ports.Node{Owner: "n", Name: "n", Lanes: lanes}
	_, err := w.store.Announce(w.t.Context(), ports.AnnounceRequest{Node: n, TTL: time.Minute})
	return err
}

func (w *worker) audited(id string) error {
	return w.store.Audit(w.t.Context(), ports.Action{ID: id, Verb: "pause", Queue: "orders"})
}

func (w *worker) step(ids ...string) ports.JobStep { return ports.JobStep{Shard: w.shard, IDs: ids} }

func (w *worker) bury(ids ...string) error {
	_, err := w.store.Bury(w.t.Context(), w.step(ids...))
	return err
}

func (w *worker) cancel(ids ...string) error {
	_, err := w.store.Cancel(w.t.Context(), ports.CancelRequest{Shard: w.shard, IDs: ids})
	return err
}

func (w *worker) purge(s ports.DeadLetterStep) error {
	_, err := w.store.Purge(w.t.Context(), s)
	return err
}

// some is a step over the payloads of a dead letter with the numbers from … to.
func (w *worker) some(id string, from, to int) ports.DeadLetterStep {
	ref := ports.DeadLetterRef{ID: id}
	for i := from; i <= to; i++ {
		ref.Payloads = append(ref.Payloads, fmt.Appendf(nil, "p%d", i))
	}
	return ports.DeadLetterStep{Shard: w.shard, DeadLetters: []ports.DeadLetterRef{ref}}
}

func (w *worker) dead(ids ...string) ports.DeadLetterStep {
	s := ports.DeadLetterStep{Shard: w.shard, DeadLetters: []ports.DeadLetterRef{}}
	for _, id := range ids {
		s.DeadLetters = append(s.DeadLetters, ports.DeadLetterRef{ID: id})
	}
	return s
}

// group is a step over dead letters that were buried by hand.
func (w *worker) group() ports.DeadLetterStep {
	return ports.DeadLetterStep{Shard: w.shard, Group: core.BuriedByHand, Before: core.MaxInstant}
}

// prepare makes what a call needs in addition to the worker's shard.
func (w *worker) prepare(call scriptCall) {
	w.t.Helper()
	if strings.HasSuffix(call.name, "a known node") {
		w.must(w.announce(5))
		w.must(w.audited("known"))
	}
	switch call.script {
	case "alter_shard":
		if strings.HasPrefix(call.name, "resume") {
			w.must(pausing(w))
		}
	case "permit":
		w.must(w.permit("held", 4))
		w.must(w.permit("wanting", 2))
	case "take", "stop", "limits":
		w.must(w.take("", "taken"))
		w.must(w.stop("stopped"))
	case "recount":
		if strings.HasSuffix(call.name, "what is wrong") {
			for _, fault := range []string{
				"zrem r plain", "zrem rt failed", "zadd i 0 never", "zrem xt dead", "zadd g:bad 0 gone",
				"hdel xg bad", "hset l alone 1", "zrem st " + field("a", "due"),
				"zadd st 5 " + field("idle", "never"), "del sn", "zadd sn 0 other",
			} {
				w.lose(strings.Fields(fault))
			}
		}
	case "discard", "set_aside_list":
		for _, id := range []string{"b", "whole"} {
			w.must(w.client.HSet(w.t.Context(), "skein:{"+w.shard.String()+"}:j", id, "?").Err())
			w.must(w.bury(id))
		}
	case "set_aside":
		if strings.HasPrefix(call.name, "beside others") {
			w.must(w.client.HSet(w.t.Context(), "skein:{"+w.shard.String()+"}:q", "1600000000000000qz", "?").Err())
		}
		for suffix, command := range losses {
			if strings.HasSuffix(call.name, suffix) {
				w.lose(strings.Fields(command))
				return
			}
		}
		base, damaged := "skein:{"+w.shard.String()+"}:", map[string]string{"j": "b", "c": "a", "x": "dead"}
		if strings.HasSuffix(call.name, "a cancel") {
			damaged = map[string]string{"k": "b"}
		}
		for key, id := range damaged {
			w.must(w.client.HSet(w.t.Context(), base+key, id, "?").Err())
		}
		w.must(w.store.Release(w.t.Context(), w.lease))
	case "set_aside_schedule":
		lost := "hset s " + field("a", "due") + " ?"
		if strings.HasPrefix(call.name, "lose") {
			lost = "hdel s " + field("a", "due")
		}
		w.lose(strings.Fields(lost))
	case "relist_schedule":
		w.lose(strings.Fields("zadd st 1 " + field("idle", "never")))
	case "forget", "forget_shard":
		w.must(w.declare("other"))
	}
}

// losses are commands that lose or damage a record, by the end of the name of the call that then
// meets it.
var losses = map[string]string{
	"lost its record":         "hdel x gone",
	"record of many payloads": "hset j whole ?",
	"lost its payloads":       "del p:whole",
	"job anew":                "zrem r plain",
	"letter anew":             "zrem xt dead",
}

// lose runs a command whose second word is the end of the name of a key of the shard.
func (w *worker) lose(command []string) {
	w.t.Helper()
	args := []any{command[0], "skein:{" + w.shard.String() + "}:" + command[1]}
	for _, arg := range command[2:] {
		args = append(args, arg)
	}
	w.must(w.client.Do(w.t.Context(), args...).Err())
}
