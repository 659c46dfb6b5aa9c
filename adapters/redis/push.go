package redis

import (
	"context"
	"fmt"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// pushEntries is the most entries that one script stores, so that it ends soon.
const pushEntries = 500

// Push implements ports.Producer. It is atomic for up to 500 entries of a shard:
// more go in several scripts, one after another, and where one fails the rest of
// its shard is not sent.
func (s *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}
	if len(r.Entries) == 0 {
		return s.pushNothing(ctx, &r)
	}
	p := pushing{store: s, r: &r, now: s.now(), parts: byShard(&r)}
	var reply ports.PushReply
	for len(p.parts) > 0 {
		calls := make([]call, len(p.parts))
		for i := range p.parts {
			calls[i] = p.call(&p.parts[i])
		}
		if len(calls) == 1 && len(r.Entries) <= gatherEntries && s.gathers() {
			p.settle(ctx, []outcome{s.runGathered(ctx, calls[0])}, &reply)
		} else {
			p.settle(ctx, s.runAll(ctx, calls), &reply)
		}
	}
	return reply, p.failure()
}

// pushNothing has only the layout to check.
func (s *Store) pushNothing(ctx context.Context, r *ports.PushRequest) (ports.PushReply, error) {
	q, err := s.queue(ctx, r.Queue)
	if err == nil {
		err = q.check(r.Shards, r.Generation)
	}
	if err != nil {
		return ports.PushReply{}, &ports.PushError{Err: err}
	}
	now, _, err := s.nodes(ctx)
	return ports.PushReply{Now: now}, err
}

// part is the entries of one shard that are not stored yet, by position.
type part struct {
	shard   core.Shard
	entries []int
}

// byShard deals the entries to their shards, in order.
func byShard(r *ports.PushRequest) []part {
	if len(r.Entries) == 1 {
		return []part{{core.Shard{Queue: r.Queue, Index: core.ShardOf(r.Entries[0].ID, r.Shards)}, []int{0}}}
	}
	var parts []part
	at := make(map[int]int)
	for i := range r.Entries {
		index := core.ShardOf(r.Entries[i].ID, r.Shards)
		k, ok := at[index]
		if !ok {
			k = len(parts)
			at[index] = k
			parts = append(parts, part{shard: core.Shard{Queue: r.Queue, Index: index}})
		}
		parts[k].entries = append(parts[k].entries, i)
	}
	return parts
}

// pushing is a push under way.
type pushing struct {
	store *Store
	r     *ports.PushRequest
	now   any
	parts []part

	lost []int
	err  error
}

// call stores the first entries of a part.
func (p *pushing) call(t *part) call {
	entries := t.entries[:min(len(t.entries), pushEntries)]
	args := make([]any, 3, 3+2*len(entries))
	args[0], args[1], args[2] = p.now, layout(p.r.Shards, p.r.Generation), terms(p.r, entries)
	size := 0
	for _, i := range entries {
		size += len(p.r.Entries[i].Data) + len(p.r.Entries[i].Meta) + 11
	}
	buffer := make([]byte, 0, size)
	for _, i := range entries {
		e, from := &p.r.Entries[i], len(buffer)
		buffer = appendRecord(buffer, &e.Payload)
		args = append(args, e.ID, buffer[from:len(buffer):len(buffer)])
	}
	return call{script: pushScript, keys: p.store.someKeys(t.shard, keyMeta, keyJobs, keyReady, keyClaims), args: args, once: true, durable: true}
}

// terms are how the chosen entries meet queued jobs and when they are due, for
// the script: nothing for the usual.
func terms(r *ports.PushRequest, chosen []int) []byte {
	now := !slices.ContainsFunc(chosen, func(i int) bool { return r.Entries[i].When != core.When{} })
	if now && r.Rule.Kind == core.Keep {
		return nil
	}
	b := fmt.Appendf(nil, "%d %d", r.Rule.Kind, r.Rule.MaxDelay().Microseconds())
	if now {
		return b
	}
	for _, i := range chosen {
		w := r.Entries[i].When
		if at, ok := w.Fixed(); ok {
			b = fmt.Appendf(b, " @%d", at)
		} else {
			b = fmt.Appendf(b, " +%d", w.Delay().Microseconds())
		}
	}
	return b
}

// settle takes from the parts what was stored, and those that failed.
func (p *pushing) settle(ctx context.Context, outcomes []outcome, reply *ports.PushReply) {
	var left []part
	for i, o := range outcomes {
		t := p.parts[i]
		now, err := o.pushed(ctx, p.store, t.shard, p.r)
		if err != nil {
			p.fail(t.entries, err)
			continue
		}
		reply.Now = now
		if t.entries = t.entries[min(len(t.entries), pushEntries):]; len(t.entries) > 0 {
			left = append(left, t)
		}
	}
	p.parts = left
}

// fail keeps the error of unknown outcome, if there is one: it holds for all
// entries that are lost.
func (p *pushing) fail(entries []int, err error) {
	p.lost = append(p.lost, entries...)
	if p.err == nil || !refusal(err) {
		p.err = err
	}
}

func (p *pushing) failure() error {
	if p.err == nil {
		return nil
	}
	slices.Sort(p.lost)
	return &ports.PushError{Entries: p.lost, Err: p.err}
}

// pushed reads the reply of the push script.
func (o *outcome) pushed(ctx context.Context, s *Store, shard core.Shard, r *ports.PushRequest) (core.Instant, error) {
	if o.err != nil {
		return 0, o.err
	}
	if now, ok := o.value.(int64); ok {
		return core.Instant(now), nil
	}
	reply := replyOf(o.value)
	switch reply.text() {
	case "unknown":
		q, err := s.queue(ctx, r.Queue)
		if err == nil {
			err = q.check(r.Shards, r.Generation)
		}
		if err == nil {
			err = s.absent(ctx, shard)
		}
		return 0, err
	case "mismatch":
		return 0, reply.mismatched(r.Queue, r.Shards, r.Generation)
	}
	return 0, errReply
}
