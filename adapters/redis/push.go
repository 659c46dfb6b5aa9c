package redis

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// pushEntries is the largest number of entries that one script stores, so that it ends soon. If
// entries exceed core.MaxStepBytes, it stores only the first of them.
const pushEntries = 500

// Push implements [ports.Producer]. For each shard it is atomic for up to 500 entries of at most 8
// MiB, if the records of the jobs that they join also have at most 8 MiB. More entries are stored
// by several scripts, one after another. If one script fails, the remaining entries of its shard
// are not sent.
func (s *Store) Push(ctx context.Context, r ports.PushRequest) (ports.PushReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PushReply{}, err
	}
	if len(r.Entries) == 0 {
		return s.pushNothing(ctx, &r)
	}

	p := pushing{store: s, r: &r, now: s.now(), asked: storekit.Layout{Shards: r.Shards, Generation: r.Generation}}
	for list := storekit.Route(nil, r.Entries, r.Shards); len(list) > 0; {
		var shard []storekit.Routed
		shard, list = storekit.CutShard(list)
		p.left = append(p.left, shard)
	}

	// A script may store only the first entries of its shard, so calls follow until none is left.
	var reply ports.PushReply
	for len(p.left) > 0 {
		calls := make([]exchange.Call, len(p.left))
		for i := range p.left {
			calls[i] = p.call(p.left[i])
		}
		if len(calls) == 1 && s.link.IsSmall(&calls[0]) {
			p.settle(ctx, calls, []exchange.Outcome{s.runSmall(ctx, calls[0])}, &reply)
		} else {
			p.settle(ctx, calls, s.runAll(ctx, calls), &reply)
		}
	}

	if p.err != nil {
		return reply, storekit.NotStored(p.failed, p.err)
	}
	return reply, nil
}

// pushNothing checks the layout for a push without entries.
func (s *Store) pushNothing(ctx context.Context, r *ports.PushRequest) (ports.PushReply, error) {
	q, err := s.queue(ctx, r.Queue)
	if err == nil {
		err = q.check(storekit.Layout{Shards: r.Shards, Generation: r.Generation})
	}
	if err != nil {
		return ports.PushReply{}, storekit.NothingStored(0, err)
	}
	nodes, err := s.Nodes(ctx)
	return ports.PushReply{Now: nodes.Now}, err
}

// pushing is a push under way.
type pushing struct {
	store *Store
	r     *ports.PushRequest
	now   any
	asked storekit.Layout
	// left is the entries that are not stored yet, a list for each shard.
	left [][]storekit.Routed
	// failed are the entries that are not known to be stored, because of err.
	failed []storekit.Routed
	err    error
}

// shard returns the shard of a list of entries.
func (p *pushing) shard(list []storekit.Routed) core.Shard {
	return core.Shard{Queue: p.r.Queue, Index: list[0].Shard}
}

// call stores the first entries of a shard's list.
func (p *pushing) call(list []storekit.Routed) exchange.Call {
	size, ids := 0, 0
	for k, at := range list {
		e := &p.r.Entries[at.Position]
		more := record.PushedSize(&e.Payload, e.Tags)
		if k == pushEntries || k > 0 && size+more > core.MaxStepBytes {
			list = list[:k]
			break
		}
		size += more
		ids += len(e.ID)
	}

	args := make([]any, 3, 4+2*len(list))
	args[0], args[1], args[2] = p.now, layoutText(p.asked), terms(p.r, list)

	// All entries share one buffer, so a push allocates once for them.
	buffer := make([]byte, 0, size)
	for _, at := range list {
		e, from := &p.r.Entries[at.Position], len(buffer)
		buffer = record.AppendPushed(buffer, &e.Payload, e.Tags)
		args = append(args, e.ID, buffer[from:len(buffer):len(buffer)])
	}
	if once := onceTimes(p.r, list); once != nil {
		args, size = append(args, once), size+len(once)
	}

	return exchange.Call{
		Script:  pushScript,
		Keys:    p.store.someKeys(p.shard(list), keyMeta, keyJobs, keyReady, keyClaims),
		Args:    args,
		Size:    size + ids,
		Entries: len(list),
		NoRetry: true,
		Durable: true,
	}
}

// terms returns, for the script, the push rule and the times of the entries of a list. It is empty
// in the usual case.
func terms(r *ports.PushRequest, list []storekit.Routed) []byte {
	now, once := true, false
	for _, at := range list {
		e := &r.Entries[at.Position]
		now, once = now && e.When == core.When{}, once || e.OnceIn > 0
	}
	if now && r.Rule.Kind == core.Keep && !r.DropStale && !once {
		return nil
	}

	var b []byte
	if r.DropStale {
		b = append(b, '~')
	}
	if once {
		b = append(b, '#')
	}
	b = fmt.Appendf(b, "%d %d", r.Rule.Kind, r.Rule.MaxDelay().Microseconds())
	if now {
		return b
	}
	for _, at := range list {
		b = appendWhen(b, r.Entries[at.Position].When)
	}
	return b
}

// onceTimes returns the keys and the times of OnceIn of the entries of a list, as lua/push/push.lua
// reads them: 24 bytes for each entry, zero for one without OnceIn. It is nil if none has OnceIn.
func onceTimes(r *ports.PushRequest, list []storekit.Routed) []byte {
	const size = 24
	var b []byte
	for k, at := range list {
		e := &r.Entries[at.Position]
		if e.OnceIn == 0 {
			continue
		}
		if b == nil {
			b = make([]byte, size*len(list))
		}
		key := e.OnceKey(r.Stamped)
		copy(b[size*k:], key[:])
		binary.BigEndian.PutUint64(b[size*k+len(key):], uint64(e.OnceIn.Microseconds()))
	}
	return b
}

// appendWhen appends the time of an entry, as scripts take it.
func appendWhen(b []byte, w core.When) []byte {
	switch at, fixed := w.Fixed(); {
	case fixed:
		return fmt.Appendf(b, " @%d", at)
	case w.Urgent():
		return fmt.Appendf(b, " !%d", w.Delay().Microseconds())
	}
	return fmt.Appendf(b, " +%d", w.Delay().Microseconds())
}

// settle removes from p.left the entries that calls have stored, and those that failed.
func (p *pushing) settle(
	ctx context.Context,
	calls []exchange.Call,
	outcomes []exchange.Outcome,
	reply *ports.PushReply,
) {
	var left [][]storekit.Routed
	for i, o := range outcomes {
		list := p.left[i]
		met, stored, err := p.pushed(ctx, &o, p.shard(list), calls[i].Entries)
		if err != nil {
			p.fail(list, err)
			continue
		}

		reply.Add(met)
		if list = list[stored:]; len(list) > 0 {
			left = append(left, list)
		}
	}

	p.left = left
}

// fail notes that entries failed. The push returns one error for all failed entries, and an error
// of unknown outcome takes precedence.
func (p *pushing) fail(list []storekit.Routed, err error) {
	p.failed = append(p.failed, list...)
	if p.err == nil || !storekit.HasKnownOutcome(err) {
		p.err = err
	}
}

// pushed reads the push script's reply for the given number of entries: what they met, and how
// many of the first ones it has stored.
func (p *pushing) pushed(
	ctx context.Context,
	o *exchange.Outcome,
	shard core.Shard,
	given int,
) (met ports.PushReply, stored int, err error) {
	if o.Err != nil {
		return met, 0, o.Err
	}

	// Usually all entries are new, and the reply is only the time.
	if now, ok := o.Value.(int64); ok {
		return ports.PushReply{Now: core.Instant(now), New: given}, given, nil
	}

	reply := record.ReplyOf(o.Value)
	switch reply.Text() {
	case "met":
		met.Now, stored = core.Instant(reply.Int()), int(reply.Int())
		met.New, met.Merged, met.Superseded = int(reply.Int()), int(reply.Int()), int(reply.Int())
		met.Stale, met.Repeated = int(reply.Int()), int(reply.Int())
		met.Duplicate = stored - met.New - met.Merged - met.Superseded - met.Stale - met.Repeated
		if stored < 1 || stored > given ||
			min(met.New, met.Merged, met.Duplicate, met.Superseded, met.Stale, met.Repeated) < 0 {
			return met, 0, record.ErrReply
		}
		return met, stored, reply.Err()
	case "unknown":
		return met, 0, p.store.noShard(ctx, shard, p.asked)
	case "mismatch":
		return met, 0, mismatched(&reply, shard.Queue, p.asked)
	}
	return met, 0, record.ErrReply
}
