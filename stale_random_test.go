package skein_test

import (
	"context"
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

// staleWorld is a queue of versions with its servers, pushers and operators, and what a consumer knows
// that remembers the highest version of each id that was done.
type staleWorld struct {
	history
	products *skein.Queue[version]
	blind    *skein.Queue[version] // of a program that handles what is stale
	// done is the mark of each id, and finished are the versions that were done since it was reset.
	done     map[string]int
	finished map[string]map[int]bool
	// pushed are the versions of each id that an operator has not removed.
	pushed map[string]map[int]bool
}

func newStaleWorld(t *rapid.T) *staleWorld {
	w := &staleWorld{
		history:  newHistory(t, "products"),
		done:     map[string]int{},
		finished: map[string]map[int]bool{},
		pushed:   map[string]map[int]bool{},
	}
	options := func(o *skein.QueueOptions[version]) {
		o.Merge = skein.Newest()
		o.Keep = skein.Keep{Age: 1000 * time.Hour}
		o.MaxRetries, o.MaxRecoveries = 1, 1000
		o.MaxPayloads = rapid.IntRange(1, 4).Draw(t, "MaxPayloads")
		o.Backoff = func(int) time.Duration { return time.Nanosecond }
	}
	w.products = versions(options)
	w.blind = versions(func(o *skein.QueueOptions[version]) {
		options(o)
		o.Stale = skein.TakeStale
	})
	w.handler = w.products.Each(w.each)
	if rapid.Bool().Draw(t, "job by job") {
		w.handler = w.products.JobHandler(w.job)
	}
	return w
}

// handle checks that a version is newer than all that were done, and draws whether it fails.
func (w *staleWorld) handle(id string, v version) error {
	if v.Number <= w.done[id] {
		w.t.Errorf("%s: version %d is handled after %d was done", id, v.Number, w.done[id])
	}
	switch rapid.IntRange(0, 5).Draw(w.t, "outcome") {
	case 0:
		return errors.New("boom")
	case 1:
		return skein.Bury(errors.New("no such product"))
	}
	return nil
}

func (w *staleWorld) finish(id string, number int) {
	w.done[id] = max(w.done[id], number)
	if w.finished[id] == nil {
		w.finished[id] = map[int]bool{}
	}
	w.finished[id][number] = true
}

func (w *staleWorld) each(_ context.Context, id string, v version) error {
	err := w.handle(id, v)
	if err == nil {
		w.finish(id, v.Number)
	}
	return err
}

// job handles the versions of a job from the highest to the lowest, or in their order, and marks
// each. What a version makes stale is checked when a later job is handled.
func (w *staleWorld) job(_ context.Context, job *skein.Job[version]) error {
	if job.Payloads[0].Value.Number <= w.done[job.ID] {
		w.t.Errorf("%s: version %d is handled after %d was done", job.ID, job.Payloads[0].Value.Number, w.done[job.ID])
	}
	fails := false
	for i := range job.Payloads {
		p := &job.Payloads[i]
		switch rapid.IntRange(0, 3).Draw(w.t, "mark") {
		case 0:
			fails = true // and the payload shares that
		case 1:
			p.Bury(errors.New("no such product"))
		default:
			p.Done()
			defer w.finish(job.ID, p.Value.Number)
		}
	}
	if fails {
		return errors.New("boom")
	}
	return nil
}

func (w *staleWorld) push() {
	id, number := w.id(), rapid.IntRange(1, 12).Draw(w.t, "version")
	queue := w.products
	if rapid.Bool().Draw(w.t, "blind") {
		queue = w.blind
	}
	check(w.t, queue.Push(context.Background(), w.client, id, version{number}))
	if w.pushed[id] == nil {
		w.pushed[id] = map[int]bool{}
	}
	w.pushed[id][number] = true
}

// crash lets a server claim jobs and die. Some of a recovered job's payloads may have ended.
func (w *staleWorld) crash() {
	lease, ok := w.acquired()
	if !ok {
		return
	}
	r := ports.TurnRequest{
		Lease: lease, Number: 1, TTL: time.Millisecond, Want: 2, PerJob: 3,
		Marks: true, Keep: core.KeepPast{Age: time.Hour},
	}
	reply, err := w.store.Turn(context.Background(), r)
	check(w.t, err)
	for i := range reply.Claims {
		c := &reply.Claims[i]
		if len(c.Payloads) < 2 || c.Stale() > 0 || rapid.Bool().Draw(w.t, "no part") {
			continue
		}
		part := c.SettlePayload(0)
		part.Mark = core.MarkAt(c.Payloads[0].Score)
		check(w.t, w.store.SettlePayload(context.Background(), lease.Shard, part))
		w.finish(c.ID, int(c.Payloads[0].Score))
	}
	w.clock.Advance(time.Second)
}

func (w *staleWorld) revive() {
	selection := inspect.DeadIDs(w.id())
	if rapid.Bool().Draw(w.t, "all") {
		selection = inspect.AllDead(nil, inspect.BulkOptions{})
	}
	force := rapid.IntRange(0, 3).Draw(w.t, "force") == 0
	if force {
		selection = selection.Force()
	}
	w.clock.Advance(time.Second)
	before := map[string]inspect.Found{}
	for _, id := range []string{"a", "b"} {
		before[id] = w.find(id)
	}
	_, err := w.inspector.Revive(context.Background(), "products", selection)
	if errors.Is(err, inspect.ErrUnknownQueue) {
		return
	}
	check(w.t, err)
	for id, was := range before {
		now := w.find(id)
		if was.Mark != nil && now.Mark == nil { // which a forced revive has removed
			if !force || was.DeadLetter == nil {
				w.t.Errorf("%s: a revive has removed the mark %v", id, *was.Mark)
			}
			for number := range w.pushed[id] { // what was dropped as stale does not come again
				if number <= w.done[id] && !isThere(&now, number) {
					delete(w.pushed[id], number)
				}
			}
			delete(w.done, id)
			delete(w.finished, id)
		}
	}
}

// bury buries a queued job, or deletes it.
func (w *staleWorld) bury() {
	id := w.id()
	_, err := w.inspector.Bury(context.Background(), "products", inspect.JobIDs(id))
	w.acted(err)
}

// move imports the dead letters again, as a move that was repeated does.
func (w *staleWorld) move() {
	page, err := w.store.Morgue(context.Background(), ports.MorgueRequest{
		PageRequest: ports.PageRequest{Queue: "products", Payloads: 100},
	})
	if errors.Is(err, ports.ErrUnknownQueue) {
		return
	}
	check(w.t, err)
	var letters []core.DeadLetter
	for _, d := range page.DeadLetters {
		letters = append(letters, d.DeadLetter)
	}
	_, err = w.store.Import(context.Background(), ports.ImportRequest{
		Shard: core.Shard{Queue: "products"}, Shards: 1, Generation: 1, DeadLetters: letters,
	})
	check(w.t, err)
}

// check compares the marks, and finds each version that was pushed: it was done, is queued, claimed or
// dead, or is not newer than what was done.
func (w *staleWorld) check() {
	for _, id := range []string{"a", "b"} {
		found := w.find(id)
		mark := 0
		if found.Mark != nil {
			mark = int(*found.Mark)
		}
		if mark != w.done[id] {
			w.t.Fatalf("the mark of %s is %d, want %d", id, mark, w.done[id])
		}

		for number := range w.pushed[id] {
			if number > w.done[id] && !w.finished[id][number] && !isThere(&found, number) {
				w.t.Fatalf("version %d of %s is lost, and %d was done", number, id, w.done[id])
			}
		}
	}
}

// isThere reports whether a version is queued, claimed or dead.
func isThere(f *inspect.Found, number int) bool {
	return slices.ContainsFunc(heldPayloads(f), func(p core.Payload) bool { return p.Score == float64(number) })
}

// Within Keep no stale version is handled after a newer one was done, and no fresh one is ever
// dropped, whatever servers, pushers and operators do.
func TestStaleVersionsInRandomHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newStaleWorld(rt)
		rt.Repeat(map[string]func(*rapid.T){
			"push":   func(*rapid.T) { w.push() },
			"pushes": func(*rapid.T) { w.push(); w.push(); w.push() },
			"run":    func(*rapid.T) { w.run() },
			"crash":  func(*rapid.T) { w.crash() },
			"revive": func(*rapid.T) { w.revive() },
			"bury":   func(*rapid.T) { w.bury() },
			"move":   func(*rapid.T) { w.move() },
			"":       func(*rapid.T) { w.check() },
		})
	})
}
