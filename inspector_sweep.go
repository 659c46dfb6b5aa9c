package skein

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// What a sweep fetches at a time. Letters with more payloads are looked up one by
// one: most have few.
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
	// match nil takes all.
	match func(DeadLetter) bool

	before core.Instant
	// left is how many letters of each shard are still to be looked at.
	left []int
	// again are ids that the sweep has moved to where it may meet them again.
	again map[string]bool
}

// run hands act the letters that match, page by page. act passes them.
func (s *sweep) run(ctx context.Context, act func([]DeadLetter) error) (Result, error) {
	if err := s.begin(ctx); err != nil {
		return s.end(err)
	}
	r := ports.MorgueRequest{PageRequest: ports.PageRequest{
		Queue: s.queue, Limit: sweepPage, Payloads: sweepPayloads,
	}}
	for more := s.progress.Total > 0; more; {
		page, err := persist(ctx, func() (ports.MorguePage, error) { return s.inspector.store.Morgue(ctx, r) })
		if err != nil {
			return s.end(err)
		}
		letters, last, err := s.choose(ctx, page.DeadLetters)
		if err != nil {
			return s.end(err)
		}
		if err := act(letters); err != nil {
			return s.end(err)
		}
		r.After = page.Next
		more = !last && page.Next != ports.Cursor{} && s.progress.Done < s.progress.Total
	}
	return s.end(nil)
}

func (s *sweep) begin(ctx context.Context) error {
	stats, err := persist(ctx, func() (ports.QueueStats, error) {
		return queueState(ctx, s.inspector.store, s.queue)
	})
	if err != nil {
		return err
	}
	s.before = endOf(stats.Now)
	s.left = make([]int, len(stats.Shards))
	for at := range stats.Shards {
		s.left[at] = int(stats.Shards[at].Dead)
		s.progress.Total += s.left[at]
	}
	return nil
}

// moved is told when an edit has changed a letter. By a clock that stands or
// steps back that may be among those still to come.
func (s *sweep) moved(id string, changed core.Instant) {
	if changed == 0 || changed >= s.before {
		return
	}
	if s.again == nil {
		s.again = make(map[string]bool)
	}
	s.again[id] = true
}

// choose is which of a page match. It reports the last page, and passes what
// doesn't match.
func (s *sweep) choose(ctx context.Context, page []ports.DeadLetterView) (chosen []DeadLetter, last bool, err error) {
	passed := 0
	for at := range page {
		v := &page[at]
		if last = v.ChangedAt >= s.before; last {
			break
		}
		shard := core.ShardOf(v.ID, len(s.left))
		if s.left[shard] == 0 || s.again[v.ID] {
			continue
		}
		s.left[shard]--
		there, err := s.whole(ctx, v)
		if err != nil {
			return nil, false, err
		}
		if there {
			if letter := s.inspector.deadLetter(v, ByTime); s.match == nil || s.match(letter) {
				chosen = append(chosen, letter)
				continue
			}
		}
		passed++
	}
	s.pass(passed, 0)
	return chosen, last, nil
}

// whole completes the payloads of a letter. It reports whether the letter is
// still one that the sweep is about.
func (s *sweep) whole(ctx context.Context, v *ports.DeadLetterView) (bool, error) {
	if len(v.Payloads) == v.Count {
		return true, nil
	}
	found, err := persist(ctx, func() (ports.Found, error) {
		return s.inspector.store.Find(ctx, s.queue, v.ID)
	})
	if err != nil || found.DeadLetter == nil || found.DeadLetter.ChangedAt >= s.before {
		return false, err
	}
	v.DeadLetter, v.Count = *found.DeadLetter, len(found.DeadLetter.Payloads)
	return true, nil
}
