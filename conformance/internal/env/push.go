package env

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Entry returns an entry that is due at once.
func Entry(id, data string, score float64) core.Entry {
	return core.Entry{ID: id, Payload: Pay(data, score)}
}

// EntryAt returns an entry that is due at an instant.
func EntryAt(id, data string, score float64, at core.Instant) core.Entry {
	en := Entry(id, data, score)
	en.When = core.At(at)
	return en
}

// Urgent returns an entry for an id that overtakes the jobs that became due up to d earlier.
func Urgent(id, data string, score float64, d time.Duration) core.Entry {
	en := Entry(id, data, score)
	en.When = core.Urgent(d)
	return en
}

// Tagged returns an entry with tags.
func Tagged(id, data string, score float64, list string) core.Entry {
	en := Entry(id, data, score)
	en.Tags = Tags(list)
	return en
}

// Tags returns a set of valid tags, which spaces separate.
func Tags(list string) core.Tags {
	set, _ := core.NewTags(strings.Fields(list)...) // it refuses invalid ones only
	return set
}

// EntriesOf returns the entries of payloads for an id.
func EntriesOf(id string, payloads []core.Payload) []core.Entry {
	out := make([]core.Entry, len(payloads))
	for i, p := range payloads {
		out[i] = core.Entry{ID: id, Payload: p}
	}
	return out
}

// Pay returns a payload.
func Pay(data string, score float64) core.Payload {
	return core.Payload{Data: []byte(data), Score: score}
}

// Sized is a payload of size bytes.
func Sized(size int, score float64) core.Payload {
	return Pay(strings.Repeat(fmt.Sprint(int(score)%10), size), score)
}

// WithScore returns the payload with another score and Meta.
func WithScore(p core.Payload, score float64, meta string) core.Payload {
	p.Score, p.Meta = score, []byte(meta)
	return p
}

// TwoPayloads returns the payloads p and q, with the scores 1 and 2.
func TwoPayloads() []core.Payload { return []core.Payload{Pay("p", 1), Pay("q", 2)} }

// ThreePayloads returns the payloads p1, p2 and p3, with the scores 1, 2 and 3.
func ThreePayloads() []core.Payload {
	return []core.Payload{Pay("p1", 1), Pay("p2", 2), Pay("p3", 3)}
}

// Tied returns n payloads, each with a Meta. Three at a time have the same score.
func Tied(n int) []core.Payload {
	all := make([]core.Payload, n)
	for i := range all {
		all[i] = core.Payload{
			Data:  fmt.Appendf(nil, "%06d", i),
			Score: float64(i/3) + 0.5,
			Meta:  fmt.Appendf(nil, "meta %d", i),
		}
	}
	return all
}

// LargeJob is a number of payloads. A store may keep a job with that many payloads in another way
// than a small job.
const LargeJob = 20

// Fresh returns the state of a job that was pushed once, at the start, and is due at an instant.
func Fresh(at core.Instant) core.State {
	return core.State{PerformAt: at, RetryCount: core.FreshRetryCount, FirstPush: Start}
}

// Retrying is the state of a job that has failed.
func Retrying(at core.Instant, count int) core.State {
	return core.State{PerformAt: at, RetryCount: count, FirstPush: Start, Failures: Failures(fmt.Sprint("failure ", count), "earlier")}
}

// Job returns a queued job.
func Job(id string, s core.State, payloads ...core.Payload) core.Job {
	return core.Job{ID: id, State: s, Payloads: payloads}
}

// Push pushes to orders.
func (e *Env) Push(entries ...core.Entry) {
	e.TB.Helper()
	e.PushTo(Orders, entries...)
}

// PushTo pushes to a queue.
func (e *Env) PushTo(queue string, entries ...core.Entry) {
	e.TB.Helper()
	_, err := e.Store.Push(e.Ctx, e.PushRequest(queue, entries...))
	e.Must(err, "Push")
}

// PushBy pushes to orders by another rule than Keep.
func (e *Env) PushBy(rule core.PushRule, entries ...core.Entry) {
	e.TB.Helper()
	r := e.PushRequest(Orders, entries...)
	r.Rule = rule
	_, err := e.Store.Push(e.Ctx, r)
	e.Must(err, "Push")
}

// PushRequest returns a push to a declared queue.
func (e *Env) PushRequest(queue string, entries ...core.Entry) ports.PushRequest {
	q := e.Declared[queue]
	return ports.PushRequest{Queue: queue, Shards: q.Shards, Generation: q.Generation, Entries: entries}
}

// Met pushes, and checks how many entries were new, merged or duplicates. If the store does not
// report that, the case ends and passes. If the push was repeated, the case has no verdict, because
// the repeat meets the entries that the first call has stored.
func (e *Env) Met(what string, r ports.PushRequest, want ports.PushReply) {
	e.TB.Helper()

	before := e.Repeats.All.Load()
	reply, err := e.Store.Push(e.Ctx, r)
	e.Must(err, "Push of "+what)

	want.Now = e.Now()
	switch {
	case e.Repeats.All.Load() > before:
		e.GiveUp()
	case reply == (ports.PushReply{Now: reply.Now}) && len(r.Entries) > 0:
		runtime.Goexit()
	}

	e.Same("what "+what+" met", reply, want)
}

// PushIDs pushes one payload for each id. All jobs are due, in the given order: the last one since
// now, and each other one a second longer than the next.
func (e *Env) PushIDs(ids ...string) {
	e.TB.Helper()
	entries := make([]core.Entry, len(ids))
	for i, id := range ids {
		entries[i] = EntryAt(id, "p", 1, e.Now().Add(time.Duration(i+1-len(ids))*time.Second))
	}
	e.Push(entries...)
}

// PushMany pushes n due jobs with one payload each. Their ids are in order.
func (e *Env) PushMany(n int) {
	e.TB.Helper()
	entries := make([]core.Entry, n)
	for i := range entries {
		entries[i] = EntryAt(fmt.Sprintf("%04d", i), "p", 1, core.Instant(i))
	}
	e.Push(entries...)
}

// PushPayloads pushes n payloads for each id, with the scores 0, 1, 2 and so on.
func (e *Env) PushPayloads(n int, ids ...string) {
	e.TB.Helper()
	var entries []core.Entry
	for at, id := range ids {
		for i := range n {
			entries = append(entries, EntryAt(id, fmt.Sprintf("%04d", i), float64(i), core.Instant(at)))
		}
	}
	e.Push(entries...)
}

// PushLarge pushes payloads for one id, due now.
func (e *Env) PushLarge(id string, payloads ...core.Payload) {
	e.TB.Helper()
	entries := make([]core.Entry, len(payloads))
	for i, p := range payloads {
		entries[i] = core.Entry{ID: id, Payload: p}
	}
	e.Push(entries...)
}

// Place queues a job in a state that pushes alone can't produce: it pushes the job, claims it and
// puts it back. The job must be the first due job of the shard.
func (e *Env) Place(id string, s core.State, payloads ...core.Payload) {
	e.TB.Helper()
	when := core.At(e.dueBy(s.PerformAt))
	entries := make([]core.Entry, len(payloads))
	for i, p := range payloads {
		entries[i] = core.Entry{ID: id, Payload: p, When: when}
	}
	e.Push(entries...)
	e.restate(id, s)
}

// Bring queues a job in any state: it imports the job and, if the state has a slot, claims it and
// puts it back. Such a job must be the first due job of the shard.
func (e *Env) Bring(id string, s core.State, payloads ...core.Payload) {
	e.TB.Helper()
	if s.Slot == "" {
		e.BringInJobs(Job(id, s, payloads...))
		return
	}

	without := s
	without.PerformAt, without.Slot = e.dueBy(s.PerformAt), ""
	e.BringInJobs(Job(id, without, payloads...))
	e.restate(id, s)
}

// dueBy returns a PerformAt for a job to be claimed now: the given one if it has come, or else 0.
func (e *Env) dueBy(at core.Instant) core.Instant {
	if at > e.Now() {
		return 0
	}
	return at
}

// restate claims the first due job of the shard, which must be that of the id, and puts it back in
// a state.
func (e *Env) restate(id string, s core.State) {
	e.TB.Helper()
	back := core.PutBack{RetryCount: s.RetryCount, Recoveries: s.Recoveries, Failures: s.Failures, Slot: s.Slot}
	if now := e.Now(); s.PerformAt > now {
		back.Delay = s.PerformAt.Sub(now)
	} else {
		back.SameTime = true
	}

	h := e.Acquire("placer")
	c := h.One()
	if c.ID != id {
		e.TB.Fatalf("the case claimed %q, want %q, to put it back in another state\nthe rule: %s", c.ID, id, e.Rule)
	}

	h.Settle(core.Settlement{ID: id, Receipt: c.Receipt, Rest: core.Requeue, PutBack: back})
	h.Release()
}

// PlaceAlone queues a job, due at an instant, that was recovered often enough to run alone.
func (e *Env) PlaceAlone(id string, at core.Instant) {
	e.TB.Helper()
	e.PlaceRecovered(core.AloneRecoveries, id, at)
}

// PlaceRecovered queues a job, due at an instant, that was recovered the given number of times.
func (e *Env) PlaceRecovered(recoveries int, id string, at core.Instant) {
	e.TB.Helper()
	s := Fresh(at)
	s.Recoveries = recoveries
	e.Place(id, s, Pay("p", 1))
}

// OddIDs returns ids that a careless store might mix up, because it folds or truncates ids. They
// are in order of their bytes.
func OddIDs() []string {
	ids := []string{
		" ", "  ", "%s", "'", "''", "\"", "$1", "*", "-1", "0", "00", "1", "1.0", "10", "2", "9",
		":", "A", "a", "a ", "a:b", "a/b", "a\\b", "e\u0301", "é", "ß", "ss", "nil", "null", "{a}", "}",
		"\u00a0", "\u200b", "\u2028", "日本語", "\ufffd", "\U0001F9F6",
		strings.Repeat("i", core.MaxIDBytes), strings.Repeat("i", core.MaxIDBytes-1),
		strings.Repeat("é", core.MaxIDBytes/2),
	}
	slices.Sort(ids)
	return ids
}

// NoTexts returns strings that are not a core.Text: one with a NUL, and two that are not UTF-8.
func NoTexts() []string { return []string{"a\x00b", "a\xff", "\xf0\x9f"} }
