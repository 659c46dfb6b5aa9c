package broken

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenOnce() []brokenStore {
	const (
		within   = "once/are accepted once within their time"
		nothing  = "once/change nothing as repeats"
		whatever = "once/are repeats whatever has become of the first"
	)
	return []brokenStore{
		{"accepts repeats", within, wrapped(entriesWhere(func(e *core.Entry) { e.OnceIn = 0 }))},
		{"remembers any push", within, wrapped(entriesWhere(func(e *core.Entry) {
			if e.OnceIn == 0 {
				e.OnceIn = time.Hour
			}
		}))},
		{"remembers for a second longer", within, wrapped(entriesWhere(func(e *core.Entry) {
			if e.OnceIn > 0 {
				e.OnceIn = min(core.MaxOnce, e.OnceIn+time.Second)
			}
		}))},
		{"remembers with the stamp", within, wrapped(pushesWhere(func(r *ports.PushRequest) { r.Stamped = false }))},
		{"always takes off a stamp", within, wrapped(pushesWhere(func(r *ports.PushRequest) { r.Stamped = true }))},
		{"remembers payloads of all ids", within, wrapped(remembering{key: func(e *core.Entry) string {
			return string(e.Data)
		}}.wrap)},
		{"prolongs the time by a repeat", within, wrapped(remembering{prolongs: true}.wrap)},
		{"remembers payloads with their scores", nothing, wrapped(remembering{key: func(e *core.Entry) string {
			return fmt.Sprint(e.ID, "/", e.Score, "/", string(e.Data))
		}}.wrap)},
		{"moves jobs and adds tags by a repeat", nothing, wrapped(storesRepeats)},
		{"counts no repeat", nothing, wrapped(func(s full) full {
			return withCounts(s, func(c *ports.Counts) { c.Repeated = 0 })
		})},
		{"remembers only what is queued", whatever, wrapped(remembersWhere(
			func(f ports.Found) bool { return f.Queued != nil }))},
		{"remembers only what is not dead", whatever, wrapped(remembersWhere(
			func(f ports.Found) bool { return f.DeadLetter == nil }))},
		{"remembers only what is stored", "once/are repeats of one that was superseded", wrapped(remembersStored)},
		{"never ends the time", "once/merge again after their time", wrapped(entriesWhere(func(e *core.Entry) {
			if e.OnceIn > 0 {
				e.OnceIn = core.MaxOnce
			}
		}))},
		{"remembers at the end of a push", "once/are repeats in one push", wrapped(remembering{late: true}.wrap)},
		{"drops repeats of a part of a push", "once/are repeats in a large push", wrapped(oncePartly)},
		{"drops all pushes of what is remembered", "once/are no repeats without a time",
			wrapped(remembering{dropsAll: true}.wrap)},
		{"remembers what is refused", "once/are not remembered if they are refused",
			wrapped(remembering{early: true}.wrap)},
		{"remembers what is stale", "once/are not remembered if they are stale", wrapped(remembering{}.wrap)},
		{"remembers a forgotten queue", "once/are forgotten with their queue",
			wrapped(remembering{keepsForgotten: true}.wrap)},
		{"looks before it pushes", "once/are accepted once of concurrent pushes", wrapped(remembering{slow: true}.wrap)},
		{"forgets everything once some time has passed", "once/are remembered beyond what one push removes",
			wrapped(remembering{forgetful: true}.wrap)},
		{"takes any time", "once/have a time within the limits", wrapped(entriesWhere(func(e *core.Entry) {
			if e.OnceIn != 0 {
				e.OnceIn = max(core.MinOnce, min(core.MaxOnce, e.OnceIn))
			}
		}))},
		{"accepts repeats of transactions", "transaction/drops repeats",
			wrapped(func(s full) full { return forgetfulTx{s} })},
		{"accepts repeats of many entries of a transaction", "transaction/drops repeats of many entries",
			wrapped(func(s full) full { return forgetfulTx{s} })},
		{"accepts repeats of transactions by a rule", "transaction/drops repeats in a queue with a merge rule",
			wrapped(func(s full) full { return forgetfulTx{s} })},
	}
}

// entriesWhere changes the entries of pushes.
func entriesWhere(change func(*core.Entry)) func(full) full {
	return pushesWhere(func(r *ports.PushRequest) {
		for i := range r.Entries {
			change(&r.Entries[i])
		}
	})
}

// remembering is a store that remembers entries by itself, and breaks one promise by it. Its store gets
// no entry with OnceIn.
type remembering struct {
	// key names what is remembered; nil is right.
	key func(*core.Entry) string
	// prolongs: a repeat prolongs the time. late: an entry is remembered once its push has ended.
	// early: it is remembered before the push is checked. dropsAll: entries without a time are
	// dropped as well.
	prolongs, late, early, dropsAll bool
	// slow: time passes between the look and the push. keepsForgotten: Forget removes nothing.
	// forgetful: everything is removed as soon as the time of something has ended.
	slow, keepsForgotten, forgetful bool
}

func (b remembering) wrap(s full) full {
	var mu sync.Mutex
	until := map[string]core.Instant{}
	var repeated int64

	name := func(r *ports.PushRequest, e *core.Entry) string {
		if b.key != nil {
			return r.Queue + "/" + b.key(e)
		}
		key := e.OnceKey(r.Stamped)
		return r.Queue + "/" + string(key[:])
	}
	pushed := replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		mu.Lock()
		defer mu.Unlock()
		stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{r.Queue}})
		if err != nil || !b.early && r.Validate() != nil || !b.early && r.Generation != stats[0].Queue.Generation {
			return s.Push(ctx, r)
		}
		now := stats[0].Now

		var accepted []core.Entry
		var dropped int
		seen := map[string]core.Instant{}
		for _, e := range r.Entries {
			key, checked := name(&r, &e), e.OnceIn > 0
			switch {
			case b.forgetful && until[key] > 0 && now >= until[key]:
				clear(until)
			case (checked || b.dropsAll) && now < until[key]:
				dropped++
				if b.prolongs {
					until[key] = now.Add(e.OnceIn)
				}
				continue
			}
			if checked {
				seen[key] = now.Add(e.OnceIn)
				if !b.late && !b.slow {
					until[key] = seen[key]
				}
			}
			e.OnceIn = 0
			accepted = append(accepted, e)
		}
		if b.slow {
			mu.Unlock()
			time.Sleep(time.Millisecond) // a slow machine makes no difference: time is virtual
			mu.Lock()
		}

		r.Entries = accepted
		reply, err := s.Push(ctx, r)
		for key, at := range seen {
			until[key] = at
		}
		reply.Repeated = dropped
		repeated += int64(dropped)
		return reply, err
	})

	forgets := replaceErr(pushed, "Forget", func(ctx context.Context, queue string) error {
		mu.Lock()
		defer mu.Unlock()
		if err := s.Forget(ctx, queue); err != nil || b.keepsForgotten {
			return err
		}
		clear(until)
		repeated = 0
		return nil
	})
	return withCounts(forgets, func(c *ports.Counts) {
		mu.Lock()
		defer mu.Unlock()
		c.Repeated = repeated
	})
}

// storesRepeats pushes again, without a time, what was a repeat.
func storesRepeats(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		reply, err := s.Push(ctx, r)
		if err != nil || reply.Repeated == 0 {
			return reply, err
		}
		for _, e := range r.Entries {
			e.OnceIn = 0
			again := r
			again.Entries = []core.Entry{e}
			if _, err := s.Push(ctx, again); err != nil {
				return reply, err
			}
		}
		return reply, nil
	})
}

// remembersWhere accepts the entries of ids that are not found so.
func remembersWhere(ok func(ports.Found) bool) func(full) full {
	return func(s full) full {
		return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
			r.Entries = append([]core.Entry{}, r.Entries...)
			for i := range r.Entries {
				found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: r.Entries[i].ID})
				if err == nil && !ok(found) {
					r.Entries[i].OnceIn = 0
				}
			}
			return s.Push(ctx, r)
		})
	}
}

// remembersStored forgets a payload that is superseded at once.
func remembersStored(s full) full {
	return replace(s, "Push", func(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
		plain := r
		plain.Entries = append([]core.Entry{}, r.Entries...)
		for i := range plain.Entries {
			plain.Entries[i].OnceIn = 0
		}
		found, err := s.Find(ctx, ports.FindRequest{Queue: r.Queue, ID: r.Entries[0].ID})
		if err == nil && found.Queued != nil && found.Queued.Payloads[0].Score > r.Entries[0].Score {
			return s.Push(ctx, plain)
		}
		return s.Push(ctx, r)
	})
}

// oncePartly takes no notice of the times behind the first hundred entries.
func oncePartly(s full) full {
	return pushesWhere(func(r *ports.PushRequest) {
		const most = 100
		for i := most; i < len(r.Entries); i++ {
			r.Entries[i].OnceIn = 0
		}
	})(s)
}

// forgetfulTx takes no notice of the times of pushes in transactions.
type forgetfulTx struct{ full }

func (s forgetfulTx) Begin(ctx context.Context) (env.Transaction, error) {
	tx, err := s.full.Begin(ctx)
	return forgetfulPushes{tx}, err
}

type forgetfulPushes struct{ env.Transaction }

func (tx forgetfulPushes) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	r.Entries = append([]core.Entry{}, r.Entries...)
	for i := range r.Entries {
		r.Entries[i].OnceIn = 0
	}
	return tx.Transaction.Push(ctx, r)
}
