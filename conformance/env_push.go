package conformance

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// entry returns an entry that is due at once.
func entry(id, data string, score float64) core.Entry {
	return core.Entry{ID: id, Payload: pay(data, score)}
}

// entryAt returns an entry that is due at an instant.
func entryAt(id, data string, score float64, at core.Instant) core.Entry {
	en := entry(id, data, score)
	en.When = core.At(at)
	return en
}

func pay(data string, score float64) core.Payload {
	return core.Payload{Data: []byte(data), Score: score}
}

// push pushes to orders.
func (e *env) push(entries ...core.Entry) {
	e.tb.Helper()
	e.pushTo(orders, entries...)
}

func (e *env) pushTo(queue string, entries ...core.Entry) {
	e.tb.Helper()
	_, err := e.store.Push(e.ctx, e.pushRequest(queue, entries...))
	e.must(err, "Push")
}

// pushBy pushes to orders by another rule than Keep.
func (e *env) pushBy(rule core.PushRule, entries ...core.Entry) {
	e.tb.Helper()
	r := e.pushRequest(orders, entries...)
	r.Rule = rule
	_, err := e.store.Push(e.ctx, r)
	e.must(err, "Push")
}

func (e *env) pushRequest(queue string, entries ...core.Entry) ports.PushRequest {
	q := e.declared[queue]
	return ports.PushRequest{Queue: queue, Shards: q.Shards, Generation: q.Generation, Entries: entries}
}

// pushIDs pushes one payload for each id. All jobs are due, in the given order: the last one since
// now, and each other one a second longer than the next.
func (e *env) pushIDs(ids ...string) {
	e.tb.Helper()
	entries := make([]core.Entry, len(ids))
	for i, id := range ids {
		entries[i] = entryAt(id, "p", 1, e.now().Add(time.Duration(i+1-len(ids))*time.Second))
	}
	e.push(entries...)
}

// place queues a job in a state that pushes alone can't produce: it pushes the job, claims it and
// puts it back. The job must be the first due job of the shard.
func (e *env) place(id string, s core.State, payloads ...core.Payload) {
	e.tb.Helper()
	back := core.PutBack{RetryCount: s.RetryCount, Recoveries: s.Recoveries, Error: s.Error}
	when := core.At(s.PerformAt)
	if now := e.now(); s.PerformAt > now {
		when, back.Delay = core.At(0), s.PerformAt.Sub(now)
	} else {
		back.SameTime = true
	}
	entries := make([]core.Entry, len(payloads))
	for i, p := range payloads {
		entries[i] = core.Entry{ID: id, Payload: p, When: when}
	}
	e.push(entries...)
	h := e.acquire("placer")
	c := h.one()
	if c.ID != id {
		e.tb.Fatalf("the case claimed %q, want %q, to put it back in another state\nthe rule: %s", c.ID, id, e.rule)
	}
	h.settle(core.Settlement{ID: id, Receipt: c.Receipt, Rest: core.Requeue, PutBack: back})
	h.release()
}

// fresh returns the state of a job that was pushed once, at the start, and is due at an instant.
func fresh(at core.Instant) core.State {
	return core.State{PerformAt: at, RetryCount: core.FreshRetryCount, FirstPush: start}
}

// job returns a queued job.
func job(id string, s core.State, payloads ...core.Payload) core.Job {
	return core.Job{ID: id, State: s, Payloads: payloads}
}

// pushMany pushes n due jobs with one payload each. Their ids are in order.
func pushMany(e *env, n int) {
	e.tb.Helper()
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = entryAt(fmt.Sprintf("%04d", i), "p", 1, core.Instant(i))
	}
	e.push(entries...)
}

// pushPayloads pushes n payloads for each id, with the scores 0, 1, 2 and so on.
func pushPayloads(e *env, n int, ids ...string) {
	e.tb.Helper()
	var entries []core.Entry
	for at, id := range ids {
		for i := range n {
			entries = append(entries, entryAt(id, fmt.Sprintf("%04d", i), float64(i), core.Instant(at)))
		}
	}
	e.push(entries...)
}

// sized is a payload of size bytes.
func sized(size int, score float64) core.Payload {
	return pay(strings.Repeat(fmt.Sprint(int(score)%10), size), score)
}

func twoPayloads() []core.Payload { return []core.Payload{pay("p", 1), pay("q", 2)} }

func threePayloads() []core.Payload {
	return []core.Payload{pay("p1", 1), pay("p2", 2), pay("p3", 3)}
}

// placeAlone queues a job, due at an instant, that was recovered often enough to run alone.
func (e *env) placeAlone(id string, at core.Instant) {
	e.tb.Helper()
	e.placeRecovered(core.AloneRecoveries, id, at)
}

// placeRecovered queues a job, due at an instant, that was recovered the given number of times.
func (e *env) placeRecovered(recoveries int, id string, at core.Instant) {
	e.tb.Helper()
	s := fresh(at)
	s.Recoveries = recoveries
	e.place(id, s, pay("p", 1))
}
