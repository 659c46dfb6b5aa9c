package inspect

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// MaxPush is the maximum number of entries of one [Inspector.Push].
const MaxPush = ports.MaxPush

// PushError names the entries of an [Inspector.Push] that are not known to be stored.
type PushError = ports.PushError

// Pushed counts what the entries of a push met in the queue. Each entry is in one of the counts.
type Pushed struct {
	// Now is the store's clock at the push.
	Now time.Time
	// New is the number of entries that made a job, because their id had no queued job. One may be
	// running.
	New int
	// Merged is the number of entries that added their payload to a queued job. It may have
	// superseded another payload there.
	Merged int
	// Duplicate is the number of entries whose job already had an equal payload. Its score may have
	// changed.
	Duplicate int
	// Superseded is the number of entries that were dropped, because the queued job has payloads
	// with higher scores and the queue's merge rule keeps only those.
	Superseded int
	// Repeated is the number of entries that were dropped, because an equal one was accepted for
	// their id and its OnceIn has not passed.
	Repeated int
}

// Push pushes entries to a queue that exists, in order. It is for programs that have payloads as
// bytes and don't know the options of the queue, such as a gateway. The store's record has the
// queue's shards and its merge rule. The caller decides what other pushing programs decide by
// skein.QueueOptions: the scores, the rule for the times of queued jobs, and how large payloads may
// be.
//
// Push is atomic for the entries of a shard, at most [MaxPush] in all, unless they or the jobs that
// they join exceed 8 MiB. If an entry is invalid, nothing is stored, and the error is that of
// core.Entry.Validate. If only some entries were stored, or the outcome is unknown, the error is a
// *[PushError], which names them. Repeating a push is safe: what is still queued merges, by the merge
// rule every only with the same scores.
//
// A push is no operator's action, so it is neither logged nor audited.
func (i *Inspector) Push(
	ctx context.Context, queue string, rule core.PushRule, entries ...core.Entry,
) (pushed Pushed, err error) {
	if len(entries) > MaxPush {
		return pushed, fmt.Errorf("push: %w: %d entries; push at most %d at once", ErrInvalidRequest, len(entries), MaxPush)
	}

	if _, err := ask(i, func(Store) (struct{}, error) { return struct{}{}, nil }); err != nil {
		return pushed, err // an inspector without a store knows no layouts either
	}

	reply, err := i.pushOnce(ctx, queue, rule, entries)
	if errors.Is(err, ErrUnknownQueue) || errors.Is(err, ports.ErrShardCountMismatch) {
		i.layouts.forget(queue) // the known record is outdated
		var partly *PushError
		if errors.As(err, &partly) && len(partly.Entries) == len(entries) {
			reply, err = i.pushOnce(ctx, queue, rule, entries)
		}
	}

	return Pushed{
		Now:        reply.Now.Time(),
		New:        reply.New,
		Merged:     reply.Merged,
		Duplicate:  reply.Duplicate,
		Superseded: reply.Superseded,
		Repeated:   reply.Repeated,
	}, err
}

// pushOnce pushes by the record of the queue that is known, or by the store's.
func (i *Inspector) pushOnce(
	ctx context.Context, name string, rule core.PushRule, entries []core.Entry,
) (reply ports.PushReply, err error) {
	queue, known := i.layouts.get(name)
	if !known {
		if queue, err = i.record(ctx, name); err != nil {
			return reply, err
		}
		i.layouts.put(queue)
	}

	stored := make([]core.Entry, len(entries))
	for at := range entries {
		stored[at] = entries[at]
		stored[at].Payload = queue.Merge.Stored(entries[at].Payload)
	}
	return ask(i, func(s Store) (ports.PushReply, error) {
		return s.Push(ctx, ports.PushRequest{
			Queue:      name,
			Shards:     queue.Shards,
			Generation: queue.Generation,
			Stamped:    queue.Merge.Same == core.SamePush,
			Rule:       rule,
			Entries:    stored,
		})
	})
}

// layoutAge is how long a record of a queue is used for pushes. Many pushes then cost one read of
// the records, and a queue that was forgotten and declared anew in another form is known soon.
const layoutAge = time.Second

// layouts are the records of queues that were pushed to lately.
type layouts struct {
	mu    sync.Mutex
	known map[string]layout
}

type layout struct {
	queue ports.Queue
	read  time.Time
}

func (l *layouts) get(name string) (ports.Queue, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	known, ok := l.known[name]
	return known.queue, ok && time.Since(known.read) < layoutAge
}

func (l *layouts) put(queue ports.Queue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = make(map[string]layout)
	}
	l.known[queue.Name] = layout{queue, time.Now()}
}

func (l *layouts) forget(name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.known, name)
}
