package skein_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// delivery is a payload of an id.
type delivery struct{ id, text string }

// onceHistory is a queue of deliveries with its servers, pushers and operators, and what a consumer
// knows that remembers each push with OnceIn.
type onceHistory struct {
	history
	queue   *skein.Queue[string]
	merge   skein.MergeRule
	repeats int64
	// until is when the time of a delivery ends, accepted how often it was accepted, done how often
	// it was done, and open how many of it must be queued, claimed or dead.
	until    map[delivery]time.Time
	accepted map[delivery]int
	done     map[delivery]int
	open     map[delivery]int
}

func newOnceHistory(t *rapid.T) *onceHistory {
	h := &onceHistory{
		history: newHistory(t, "deliveries"),
		merge: rapid.SampledFrom([]skein.MergeRule{
			skein.Union(), skein.Newest(), skein.Every(), skein.Latest(1),
		}).Draw(t, "merge"),
		until:    map[delivery]time.Time{},
		accepted: map[delivery]int{},
		done:     map[delivery]int{},
		open:     map[delivery]int{},
	}
	h.queue = skein.NewQueue("deliveries", skein.QueueOptions[string]{
		Shards: 1, Merge: h.merge, MaxRetries: 1, MaxRecoveries: 1000,
		Backoff: func(int) time.Duration { return time.Nanosecond },
	})
	h.handler = h.queue.Each(h.handle)
	return h
}

func (h *onceHistory) handle(_ context.Context, id, text string) error {
	switch rapid.IntRange(0, 5).Draw(h.t, "outcome") {
	case 0:
		return errors.New("boom")
	case 1:
		return skein.Bury(errors.New("no such order"))
	}
	h.finish(delivery{id, text})
	return nil
}

func (h *onceHistory) finish(d delivery) {
	h.done[d]++
	h.open[d] = max(0, h.open[d]-1)
}

func (h *onceHistory) push() {
	d := delivery{h.id(), rapid.SampledFrom([]string{"x", "y", "z"}).Draw(h.t, "text")}
	in := rapid.SampledFrom([]time.Duration{0, time.Second, 10 * time.Second, time.Minute}).Draw(h.t, "once in")
	var met skein.Met
	options := []skein.PushOption{skein.Tell(&met)}
	if in > 0 {
		options = append(options, skein.OnceIn(in))
	}
	now := h.clock.Now()
	check(h.t, h.queue.Push(context.Background(), h.client, d.id, d.text, options...))

	repeat := in > 0 && now.Before(h.until[d])
	if repeat != (met.Repeated == 1) || met.New+met.Merged+met.Duplicate+met.Superseded+met.Repeated != 1 {
		h.t.Fatalf("a push of %v with OnceIn %v met %+v; its time ends at %v, now is %v", d, in, met, h.until[d], now)
	}
	if repeat {
		h.repeats++
		return
	}
	h.accepted[d]++
	if h.open[d]++; h.merge != skein.Every() {
		h.open[d] = 1
	}
	if in > 0 {
		h.until[d] = now.Add(in)
	}
}

func (h *onceHistory) wait() {
	h.clock.Advance(rapid.SampledFrom([]time.Duration{
		time.Microsecond, time.Second, 9 * time.Second, time.Minute, time.Hour,
	}).Draw(h.t, "time"))
}

// crash lets a server claim jobs, settle one of them as done or not, and die.
func (h *onceHistory) crash() {
	lease, ok := h.acquired()
	if !ok {
		return
	}
	r := ports.TurnRequest{Lease: lease, Number: 1, TTL: time.Millisecond, Want: 2, PerJob: 2}
	reply, err := h.store.Turn(context.Background(), r)
	check(h.t, err)
	if len(reply.Claims) > 0 && rapid.Bool().Draw(h.t, "settles") {
		c := reply.Claims[0]
		s := core.RetryPolicy{}.Settlement(&c, &core.Outcome{Kind: core.Done}, 0)
		r.Number, r.Want, r.Settlements = 2, 0, []core.Settlement{s}
		_, err = h.store.Turn(context.Background(), r)
		check(h.t, err)
		for _, p := range c.Payloads {
			h.finish(delivery{c.ID, h.text(p)})
		}
	}
	h.clock.Advance(time.Second)
}

// text returns what was pushed as a stored payload.
func (h *onceHistory) text(stored core.Payload) (text string) {
	check(h.t, json.Unmarshal(h.merge.Pushed(stored).Data, &text))
	return text
}

// operate buries, deletes or revives.
func (h *onceHistory) operate() {
	ctx, id := context.Background(), h.id()
	h.clock.Advance(time.Second)
	var err error
	switch rapid.IntRange(0, 3).Draw(h.t, "action") {
	case 0:
		_, err = h.inspector.Bury(ctx, "deliveries", inspect.JobIDs(id))
	case 1:
		_, err = h.inspector.Revive(ctx, "deliveries", inspect.DeadIDs(id))
	case 2:
		_, err = h.inspector.Delete(ctx, "deliveries", inspect.JobIDs(id))
		h.close(id)
	case 3:
		_, err = h.inspector.Purge(ctx, "deliveries", inspect.DeadIDs(id))
		h.close(id)
	}
	h.acted(err)
}

// close notes that the deliveries of an id may be gone.
func (h *onceHistory) close(id string) {
	for d := range h.open {
		if d.id == id {
			h.open[d] = 0
		}
	}
}

// check compares the count of repeats, and finds each delivery that was accepted, unless it is done or
// an operator or the merge rule may have removed it. None was done more often than it was accepted.
func (h *onceHistory) check() {
	for d, n := range h.done {
		if n > h.accepted[d] {
			h.t.Fatalf("%v was accepted %d times and done %d times", d, h.accepted[d], n)
		}
	}

	queues, err := h.inspector.Stats(context.Background(), "deliveries")
	if errors.Is(err, inspect.ErrUnknownQueue) {
		return
	}
	check(h.t, err)
	if queues[0].Repeated != h.repeats {
		h.t.Fatalf("%d repeats are counted, want %d", queues[0].Repeated, h.repeats)
	}
	if h.merge == skein.Latest(1) {
		return
	}
	for d, open := range h.open {
		if open > 0 && !h.isThere(d) {
			h.t.Fatalf("%v is lost: it was accepted %d times and done %d times", d, h.accepted[d], h.done[d])
		}
	}
}

func (h *onceHistory) isThere(d delivery) bool {
	found := h.find(d.id)
	return slices.ContainsFunc(heldPayloads(&found), func(p core.Payload) bool {
		var text string
		return json.Unmarshal(p.Data, &text) == nil && text == d.text || h.text(p) == d.text
	})
}

// Within its time no push that came twice makes a job, and no other is dropped, whatever servers,
// pushers and operators do.
func TestOnceInInRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := newOnceHistory(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"push":    func(*rapid.T) { h.push() },
			"pushes":  func(*rapid.T) { h.push(); h.push(); h.push() },
			"wait":    func(*rapid.T) { h.wait() },
			"run":     func(*rapid.T) { h.run() },
			"crash":   func(*rapid.T) { h.crash() },
			"operate": func(*rapid.T) { h.operate() },
			"":        func(*rapid.T) { h.check() },
		})
	})
}
