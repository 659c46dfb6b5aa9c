package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// shardsToAsk is the number of a queue's shards that inspection asks for the queue's record, if the
// Cluster's server that has the list of queues does not answer in time.
const shardsToAsk = 16

// errNoRegistry and errListAway are returned when the Cluster's server that has the list of queues
// can't be reached: a queue can't be inspected, or can't be declared.
var (
	errNoRegistry = errors.New("redis: neither the Cluster's server with the list of queues " +
		"nor a shard of the queue can be reached; " +
		"restore the server with the list")
	errListAway = fmt.Errorf("%w; until then the queue can't be declared", errNoRegistry)
)

// seenQueues are the records of queues as this store has seen them last. They replace the list
// while the Cluster's server that has it can't be reached: the shard count of a queue does not
// change.
type seenQueues struct {
	mu sync.Mutex
	of map[string]queueRecord
	// listed is set once all queues were read together.
	listed bool
	// damaged are the unreadable records, as they were logged.
	damaged map[string]string
}

// isNewDamage reports whether an unreadable record was not seen before.
func (q *seenQueues) isNewDamage(name, text string) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if seen, known := q.damaged[name]; known && seen == text {
		return false
	}
	if q.damaged == nil {
		q.damaged = make(map[string]string)
	}
	q.damaged[name] = text
	return true
}

// mended notes that a record is no longer damaged, so that it is logged if it is damaged again.
func (q *seenQueues) mended(shard core.Shard) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.damaged) > 0 {
		delete(q.damaged, shard.String())
	}
}

// note keeps a queue's record. If known is false, the queue has no record.
func (q *seenQueues) note(name string, record queueRecord, known bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !known {
		delete(q.of, name)
		return
	}
	if q.of == nil {
		q.of = make(map[string]queueRecord)
	}
	record.Settings = record.Settings.Clone()
	q.of[name] = record
}

// noteAll takes the list, and owns it from then on.
func (q *seenQueues) noteAll(records map[string]queueRecord) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.of, q.listed = records, true
}

// record returns the record of a queue, if it was seen.
func (q *seenQueues) record(name string) (queueRecord, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	record, known := q.of[name]
	record.Settings = record.Settings.Clone()
	return record, known
}

// list returns all queues in order of name, if the list was seen.
func (q *seenQueues) list() ([]ports.Queue, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return inOrder(q.of), q.listed
}

// inOrder returns queues in order of name, for a caller who owns them.
func inOrder(records map[string]queueRecord) []ports.Queue {
	queues := make([]ports.Queue, 0, len(records))
	for record := range maps.Values(records) {
		record.Settings = record.Settings.Clone()
		queues = append(queues, record.Queue)
	}
	slices.SortFunc(queues, func(a, b ports.Queue) int { return strings.Compare(a.Name, b.Name) })
	return queues
}

// Queues implements [ports.Registry]. While the server of a Cluster that has the list can't be
// reached, it returns the list that this store read last or, after a few seconds, an error.
func (s *Store) Queues(ctx context.Context) ([]ports.Queue, error) {
	if err := s.ready(ctx); err != nil {
		return nil, err
	}

	asking, cancel := ctx, context.CancelFunc(func() {})
	seen, known := s.seen.list()
	switch {
	case !s.link.OnCluster():
		known = false
	case known:
		asking, cancel = context.WithTimeout(ctx, exchange.ListPatience)
	default:
		asking, cancel = context.WithTimeout(ctx, exchange.LongestPatience)
	}
	defer cancel()

	records, err := s.listQueues(asking)
	switch {
	case err == nil:
		queues := inOrder(records)
		s.seen.noteAll(records)
		return queues, nil
	case storekit.HasKnownOutcome(err) || ctx.Err() != nil:
		return nil, err
	case known:
		return seen, nil
	case asking.Err() != nil:
		return nil, fmt.Errorf(
			"redis: the Cluster's server with the list of queues has not answered within %v; check that server",
			exchange.LongestPatience)
	}
	return nil, err
}

// listQueues reads the list. It logs records that can't be read.
func (s *Store) listQueues(ctx context.Context) (map[string]queueRecord, error) {
	records, unread, err := s.readQueues(ctx)
	for name, text := range unread {
		if s.seen.isNewDamage(name, text) {
			s.logger.Error(
				"the record of a queue can't be read, so the queue is not listed; skein repair recount restores it",
				"queue", name, "record", text)
		}
	}
	return records, err
}

// readQueues reads the list, and returns also the texts of records that can't be read.
func (s *Store) readQueues(ctx context.Context) (records map[string]queueRecord, unread map[string]string, err error) {
	all, err := exchange.Ask(ctx, s.link, goredis.NewMapStringStringCmd(ctx, "hgetall", s.queuesKey()))
	if err != nil {
		return nil, nil, err
	}

	records, unread = make(map[string]queueRecord, len(all)), make(map[string]string)
	for name, text := range all {
		if !isQueueField(name) {
			continue
		}

		q, err := parseQueueRecord(name, text)
		if err != nil {
			unread[name] = text
			continue
		}
		q.Settings = s.settingsOf(name, all[settingsField(name)])
		records[name] = q
	}
	return records, unread, nil
}

// knownQueue returns a queue's record for inspection: from the list or, if the list is on a server
// of a Cluster that can't be reached, from a shard, which has a copy, or from what this store has
// seen.
func (s *Store) knownQueue(ctx context.Context, name string) (queueRecord, error) {
	l := queueLooker{store: s}
	return l.queue(ctx, name)
}

// queueLooker finds the records of several queues for inspection.
type queueLooker struct {
	store *Store
	// lost is the reason why the list can't be reached. Once it is set, the list is not read again.
	lost error
}

func (l *queueLooker) queue(ctx context.Context, name string) (queueRecord, error) {
	s := l.store
	if !s.link.OnCluster() {
		return s.queueOrKept(ctx, name, lookPatience)
	}
	if err := s.ready(ctx); err != nil {
		return queueRecord{}, err
	}

	if l.lost == nil {
		brief, cancel := context.WithTimeout(ctx, exchange.ListPatience)
		defer cancel()
		q, err := s.queueOrKept(brief, name, lookPatience)
		if err == nil || storekit.HasKnownOutcome(err) || ctx.Err() != nil {
			return q, err
		}
		l.lost = err
	}

	// A shard has a copy of the queue's record.
	for _, o := range s.runApartBy(
		ctx,
		exchange.Apart{Most: shardsToAsk, Patience: exchange.ListPatience / 2},
		s.shardRecordCalls(name),
	) {
		if text, ok := o.Value.(string); ok && o.Err == nil {
			q, err := parseQueueRecord(name, text)
			if err == nil {
				s.server.ours.Store(true)
				last, _ := s.seen.record(name)
				q.Settings = last.Settings // shards have no copy of them
			}
			return q, err
		}
	}

	if ctx.Err() != nil {
		return queueRecord{}, exchange.Translate(ctx, ctx.Err())
	}
	if q, known := s.seen.record(name); known {
		return q, nil
	}

	// No copy of the queue's record was found. The list may only be slow, and it is authoritative.
	patient, cancel := context.WithTimeout(ctx, exchange.Patience(ctx, exchange.LongestPatience))
	defer cancel()
	q, err := s.queue(patient, name)
	if err == nil || storekit.HasKnownOutcome(err) || ctx.Err() != nil {
		return q, err
	}
	return queueRecord{}, fmt.Errorf("%w: %v", errNoRegistry, err)
}
