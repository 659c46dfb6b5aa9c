package redis

import (
	"context"
	"slices"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// trackedKey names the tracked ids of a queue. It is in the slot of the queue's first shard, so
// that one script sees whether the queue exists.
func (s *Store) trackedKey(queue string) string { return s.base(core.Shard{Queue: queue}) + "tracked" }

// track calls a script on the tracked ids of a queue. The result is nil if the queue does not
// exist.
func (s *Store) track(ctx context.Context, queue string, script *exchange.Script, args ...any) (any, error) {
	if _, err := s.queue(ctx, queue); err != nil {
		return nil, err
	}
	keys := append(s.someKeys(core.Shard{Queue: queue}, keyMeta), s.trackedKey(queue))
	once := script == trackScript // a repeat would report that nothing has changed
	value, err := s.run(ctx, exchange.Call{Script: script, Keys: keys, Args: args, NoRetry: once})
	if err == nil && value == nil {
		err = storekit.UnknownQueue(queue)
	}
	return value, err
}

// Track implements [ports.Tracker].
func (s *Store) Track(ctx context.Context, r ports.TrackRequest) (changed bool, err error) {
	if err := r.Validate(); err != nil {
		return false, err
	}

	value, err := s.track(ctx, r.Queue, trackScript, s.now(), r.ID, boolArg(r.Untrack), ports.MaxTracked)
	if err != nil {
		return false, err
	}

	n, ok := value.(int64)
	switch {
	case !ok:
		return false, record.ErrReply
	case n < 0:
		return false, storekit.TooManyTracked(r.Queue)
	}
	return n == 1, nil
}

// Tracked implements [ports.Tracker].
func (s *Store) Tracked(ctx context.Context, queue string) ([]ports.TrackedID, error) {
	value, err := s.track(ctx, queue, trackedScript)
	if err != nil {
		return nil, err
	}
	var all []ports.TrackedID
	r := record.ReplyOf(value)
	for r.More() {
		all = append(all, ports.TrackedID{ID: r.Text(), Since: core.Instant(r.Parsed())})
	}
	slices.SortFunc(all, func(a, b ports.TrackedID) int { return strings.Compare(a.ID, b.ID) })
	return all, r.Err()
}
