package inspect

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// drain is an action on all of a kind that the store picks by itself. It ends:
// what comes in meanwhile does not count.
type drain struct {
	inspector *Inspector
	*action
	// count returns how many entries of a shard the action is about.
	count func(*ports.Counts) int64
	// step handles up to limit entries of a shard, of dead letters those that last changed before before.
	step func(s Store, ctx context.Context, shard core.Shard, limit int, before core.Instant) (ports.StepReply, error)
}

func (d *drain) run(ctx context.Context, queue string) (Result, error) {
	if d.invalid != nil {
		return d.end(d.invalid)
	}
	stats, err := d.inspector.queueStats(ctx, queue)
	if err != nil {
		return d.end(err)
	}
	before, next := endOf(stats.Now), 0
	if g := d.going; g != nil {
		if err := g.begin(&stats); err != nil {
			return d.end(err)
		}
		before, next = g.at.Before, g.next
	}
	if d.going == nil || !d.going.continued() {
		for at := range stats.Shards {
			d.progress.Total += int(d.count(&stats.Shards[at].Counts))
		}
	}
	if g := d.going; g != nil {
		if err := g.note(d.action, g.next, g.from); err != nil {
			return d.end(err)
		}
	}
	for at := range stats.Shards {
		s := &stats.Shards[at]
		if s.Shard.Index < next {
			continue
		}
		limited, err := d.shard(ctx, s.Shard, int(d.count(&s.Counts)), before)
		if err != nil {
			return d.end(fmt.Errorf("shard %v: %w", s.Shard, err))
		}
		if limited {
			return d.limited()
		}
	}
	return d.end(partial(stats.Unreached))
}

// partSteps is after how many steps in a row that finished no entry an action gives up: the
// store does not get on, or an entry has ten million payloads.
const partSteps = 10_000

// shard repeats the step until it leaves nothing, or has handled as many entries
// as the shard held. It reports whether Limit has ended the action.
func (d *drain) shard(ctx context.Context, shard core.Shard, left int, before core.Instant) (limited bool, err error) {
	unfinished := 0
	for more := true; more && left > 0 && unfinished < partSteps; unfinished++ {
		limit := min(left, ports.MaxStep)
		if d.going != nil {
			if limit = d.going.room(limit); limit == 0 {
				return true, nil
			}
		}
		reply, err := persist(ctx, d.inspector, func(s Store) (ports.StepReply, error) {
			return d.step(s, ctx, shard, limit, before)
		})
		if err != nil {
			return false, err
		}
		d.pass(reply.Handled, reply.Handled)
		left -= reply.Handled
		if d.going != nil {
			if err := d.going.step(ctx, d.action, reply.Handled, shard.Index, ports.Cursor{}); err != nil {
				return false, err
			}
		}
		more = reply.More
		if reply.Handled > 0 {
			unfinished = -1
		}
	}
	d.pass(left, 0)
	return false, nil
}

// What a sweep fetches at a time. Dead letters with more payloads are looked up
// one by one: most have few.
const (
	sweepPage     = ports.DefaultPage
	sweepPayloads = 16
)

// sweep is an action on the dead letters that match: it looks at those that were
// there when it began, the longest unchanged first.
type sweep struct {
	inspector *Inspector
	*action
	queue string
	// match chooses dead letters; nil takes all.
	match func(DeadLetter) bool

	// before is the end of what the sweep is about: what changed then or later is
	// left alone.
	before core.Instant
	// shards has those of the queue that have dead letters to look at, and left how many of each are
	// still to be looked at, by index.
	shards []core.Shard
	left   []int
	// unreached are the shards that the sweep could not reach.
	unreached []core.Shard
	// edited has the ids that the sweep has changed and may meet again.
	edited map[string]bool
}

// run calls act with the dead letters that match, shard by shard and page by page. act passes them.
func (s *sweep) run(ctx context.Context, act func([]DeadLetter) error) (Result, error) {
	if s.invalid != nil {
		return s.end(s.invalid)
	}
	if err := s.begin(ctx); err != nil {
		return s.end(err)
	}
	if g := s.going; g.o.DryRun {
		act = func(page []DeadLetter) error {
			g.sample(page)
			s.pass(len(page), len(page))
			return nil
		}
	}
	for _, shard := range s.shards {
		limited, err := s.shard(ctx, shard, act)
		if err != nil {
			return s.end(err)
		}
		if limited {
			return s.limited()
		}
	}
	return s.end(partial(s.unreached))
}

// shard sweeps one shard. A page may be short: the sweep goes on while there is a next. It reports
// whether Limit has ended the action.
func (s *sweep) shard(ctx context.Context, shard core.Shard, act func([]DeadLetter) error) (limited bool, err error) {
	r := ports.MorgueRequest{PageRequest: ports.PageRequest{
		Queue: s.queue, Shards: []int{shard.Index}, Limit: sweepPage, Payloads: sweepPayloads,
	}}
	if s.going.continued() && shard.Index == s.going.next {
		r.After = s.going.from
	}
	for more := true; more; {
		room := s.going.room(sweepPage)
		if room == 0 {
			return true, nil
		}
		page, err := persist(ctx, s.inspector, func(store Store) (ports.MorguePage, error) { return store.Morgue(ctx, r) })
		if err != nil {
			return false, fmt.Errorf("shard %v: %w", shard, err)
		}
		chosen, seen, last, err := s.choose(ctx, page.DeadLetters, room)
		if err != nil {
			return false, err
		}
		if err := act(chosen); err != nil {
			return false, err
		}
		if r.After = page.Next; seen < len(page.DeadLetters) && !last {
			v := &page.DeadLetters[seen-1] // room is above 0
			r.After = ports.Cursor{Key: int64(v.ChangedAt), ID: v.ID}
		}
		more = !last && r.After != ports.Cursor{} && s.left[shard.Index] > 0
		place, from := shard.Index, r.After
		if !more {
			place, from = shard.Index+1, ports.Cursor{}
		}
		if err := s.going.step(ctx, s.action, len(chosen), place, from); err != nil {
			return false, err
		}
	}
	s.pass(s.left[shard.Index], 0) // gone meanwhile
	s.left[shard.Index] = 0
	return false, nil
}

func (s *sweep) begin(ctx context.Context) error {
	stats, err := s.inspector.queueStats(ctx, s.queue)
	if err != nil {
		return err
	}
	if err := s.going.begin(&stats); err != nil {
		return err
	}
	s.before, s.unreached = s.going.at.Before, stats.Unreached
	s.left = make([]int, stats.Queue.Shards)
	for at := range stats.Shards {
		sh := &stats.Shards[at]
		if sh.Dead == 0 || sh.Shard.Index < s.going.next {
			continue
		}
		s.shards = append(s.shards, sh.Shard)
		s.left[sh.Shard.Index] = int(sh.Dead)
		if !s.going.continued() {
			s.progress.Total += int(sh.Dead)
		}
	}
	return s.going.note(s.action, s.going.next, s.going.from)
}

// choose returns which of a page match, at most room of them, how many of the page it has looked at,
// and whether the page is the last. It passes what doesn't match.
func (s *sweep) choose(
	ctx context.Context, page []ports.DeadLetterView, room int,
) (chosen []DeadLetter, seen int, last bool, err error) {
	passed := 0
	for ; seen < len(page) && len(chosen) < room; seen++ {
		v := &page[seen]
		if last = v.ChangedAt >= s.before; last {
			break
		}
		shard := core.ShardOf(v.ID, len(s.left))
		if s.left[shard] == 0 || s.edited[v.ID] {
			continue
		}
		s.left[shard]--
		there, err := s.complete(ctx, v)
		if err != nil {
			return nil, seen, false, err
		}
		if there {
			if d := s.inspector.views.deadLetter(v, ByTime); s.match == nil || s.match(d) {
				chosen = append(chosen, d)
				continue
			}
		}
		passed++
	}
	s.pass(passed, 0)
	return chosen, seen, last, nil
}

// complete fetches the payloads that a page has left out. It reports whether the
// dead letter is still one that the sweep is about.
func (s *sweep) complete(ctx context.Context, v *ports.DeadLetterView) (bool, error) {
	if len(v.Payloads) == v.Count {
		return true, nil
	}
	found, err := persist(ctx, s.inspector, func(store Store) (ports.Found, error) {
		return store.Find(ctx, s.queue, v.ID)
	})
	if err != nil || found.DeadLetter == nil || found.DeadLetter.ChangedAt >= s.before {
		return false, err
	}
	v.DeadLetter, v.Count = *found.DeadLetter, len(found.DeadLetter.Payloads)
	return true, nil
}

// noteEdit remembers that an edit has changed a dead letter: by a clock that stands
// or steps back it may be among those still to come.
func (s *sweep) noteEdit(id string, changed core.Instant) {
	if changed == 0 || changed >= s.before {
		return
	}
	if s.edited == nil {
		s.edited = make(map[string]bool)
	}
	s.edited[id] = true
}

// queueStats returns the state of one queue.
func (i *Inspector) queueStats(ctx context.Context, queue string) (ports.QueueStats, error) {
	return persist(ctx, i, func(s Store) (none ports.QueueStats, err error) {
		stats, err := s.Stats(ctx, ports.StatsRequest{Queues: []string{queue}})
		if err != nil {
			return none, err
		}
		if len(stats) != 1 {
			return none, fmt.Errorf("%w: %q", ErrUnknownQueue, queue)
		}
		return stats[0], nil
	})
}

// endOf returns the end of the microsecond in which an action began: what was
// buried within it, before the action, belongs to it.
func endOf(began core.Instant) core.Instant { return began + 1 }
