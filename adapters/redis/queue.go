package redis

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// queueRecord is a queue's stored record, both the queue's own and each shard's, with the version
// of its last change.
type queueRecord struct {
	ports.Queue
	// text is the record in the form in which a shard keeps it.
	text    string
	version int64
	// whole is set if all shards were declared, so that one without a record has lost it. Only the
	// queue's own record has it, in the place where the nonce of a Forget otherwise stands.
	whole, forgetting bool
	// kept is set if the queue has lost its record and this is the one that its shards have.
	kept bool
}

func parseQueueRecord(name, text string) (queueRecord, error) {
	r := queueRecord{Queue: ports.Queue{Name: name}, text: text}
	if parts := strings.SplitAfterN(text, " ", 6); len(parts) == 6 {
		r.whole, r.forgetting = parts[5] == "+", parts[5] != "+"
		r.text = strings.TrimSuffix(text, " "+parts[5])
	}

	var index, paused int
	n, err := fmt.Sscanf(text, "%d %d %d %d %d", &index, &paused, &r.Shards, &r.Generation, &r.version)
	if n != 5 || err != nil || r.Shards < 1 || r.Shards > core.MaxShards {
		return queueRecord{}, record.ErrStored
	}
	r.IndexIDs, r.Paused = index == 1, paused == 1

	if _, rule, ok := strings.Cut(r.text, "="); ok {
		rule, push := strings.CutSuffix(rule, pushSuffix)
		same := core.SameData
		if push {
			same = core.SamePush
		}
		code, err := strconv.Atoi(rule)
		if err == nil {
			r.Merge, err = storekit.MergeRuleOf(code, same)
		}
		if err != nil {
			return queueRecord{}, record.ErrStored
		}
	}

	return r, nil
}

// pushSuffix ends the merge rule of a queue with core.SamePush.
const pushSuffix = "=1"

// ruleArg returns a merge rule as declare.lua stores it.
func ruleArg(r core.MergeRule) string {
	if r == (core.MergeRule{}) {
		return ""
	}
	arg := "=" + strconv.Itoa(storekit.MergeCode(r))
	if r.Same == core.SamePush {
		arg += pushSuffix
	}
	return arg
}

// boolArg returns a bool as the argument of a script.
func boolArg(b bool) int {
	if b {
		return 1
	}
	return 0
}

// queue returns a queue's record with its settings. If the record is lost or can't be read, it returns
// the settings with the error.
func (s *Store) queue(ctx context.Context, name string) (queueRecord, error) {
	if err := s.ready(ctx); err != nil {
		return queueRecord{}, err
	}
	if !isQueueField(name) {
		return queueRecord{}, storekit.UnknownQueue(name)
	}

	texts, err := exchange.Ask(ctx, s.link,
		goredis.NewSliceCmd(ctx, "hmget", s.queuesKey(), name, settingsField(name)))
	if err != nil {
		return queueRecord{}, err
	}
	if len(texts) != 2 {
		return queueRecord{}, record.ErrReply
	}
	text, _ := texts[0].(string)
	stored, _ := texts[1].(string)
	settings := s.settingsOf(name, stored)
	unread := queueRecord{Queue: ports.Queue{Name: name, Settings: settings}}

	if text == "" {
		s.seen.note(name, queueRecord{}, false)
		return unread, storekit.UnknownQueue(name)
	}
	q, err := readQueueRecord(name, text)
	if err != nil {
		return unread, err
	}

	q.Settings = settings
	s.seen.note(name, q, true)
	return q, nil
}

// readQueueRecord parses a queue's own record.
func readQueueRecord(name, text string) (queueRecord, error) {
	q, err := parseQueueRecord(name, text)
	if err != nil {
		return q, fmt.Errorf("%w: %q, the record of queue %q; skein repair recount restores it", err, text, name)
	}
	return q, nil
}

// layout returns the queue's shards and generation.
func (r *queueRecord) layout() storekit.Layout {
	return storekit.Layout{Shards: r.Shards, Generation: r.Generation}
}

// check compares the layout that a caller asked for with the queue's.
func (r *queueRecord) check(asked storekit.Layout) error {
	if r.layout() == asked {
		return nil
	}
	return storekit.LayoutMismatch(r.Name, asked, r.layout())
}

// layoutText returns a layout as scripts compare it.
func layoutText(l storekit.Layout) string {
	return strconv.Itoa(l.Shards) + " " + strconv.FormatInt(l.Generation, 10)
}

// mismatched reads the layout that a script has found, and returns ErrShardCountMismatch.
func mismatched(r *record.Reply, queue string, asked storekit.Layout) error {
	var actual storekit.Layout
	if _, err := fmt.Sscanf(r.Text(), "%d %d", &actual.Shards, &actual.Generation); err != nil {
		return record.ErrReply
	}
	return storekit.LayoutMismatch(queue, asked, actual)
}

// noShard returns the reason why a shard has no record, for a caller that requested a layout. If
// the layout is wrong, that is the reason.
func (s *Store) noShard(ctx context.Context, shard core.Shard, asked storekit.Layout) error {
	q, err := s.queueOrKept(ctx, shard.Queue, lookPatience)
	if err == nil {
		err = q.check(asked)
	}
	if err != nil {
		return err
	}
	return s.absent(ctx, shard)
}

// absent returns the reason why a script found no record of a shard: the queue has no record, the
// queue does not have this shard, a Declare had not reached the shard yet, or the record was lost.
// A Declare may have reached the shard since. So the shard is lost only if it still has no record
// when the queue's record states that all have one.
func (s *Store) absent(ctx context.Context, shard core.Shard) error {
	q, err := s.queueOrKept(ctx, shard.Queue, lookPatience)
	if err != nil {
		return err
	}
	if shard.Index < 0 || shard.Index >= q.Shards {
		return storekit.NoSuchShard(shard)
	}

	if q.whole || q.kept {
		_, found, err := s.readRecord(ctx, shard)
		if err != nil {
			return err
		}
		if !found {
			return lostRecord(shard)
		}
	}

	return fmt.Errorf("%w: %v had no record; declare the queue again", ports.ErrUnknownQueue, shard)
}

// readRecord returns the record of a shard. found is false if it has no record that can be read.
func (s *Store) readRecord(ctx context.Context, shard core.Shard) (record queueRecord, found bool, err error) {
	text, err := exchange.Ask(ctx, s.link, goredis.NewStringCmd(ctx, "get", s.keys(shard)[keyMeta]))
	if err != nil {
		return queueRecord{}, false, err
	}
	record, unread := parseQueueRecord(shard.Queue, text)
	return record, unread == nil, nil
}

func lostRecord(shard core.Shard) error {
	return fmt.Errorf("redis: shard %v: %w", shard, ErrLostRecord)
}

// mostNamed is the largest number of shards that a line of the log names.
const mostNamed = 8

// logLost logs, in one line, the shards of a queue that a call has found without a record that can
// be read.
func (s *Store) logLost(shards []core.Shard) {
	if len(shards) == 0 {
		return
	}

	var names []string
	for _, shard := range shards[:min(len(shards), mostNamed)] {
		names = append(names, shard.String())
	}
	s.logger.Error(
		"shards have lost their records, so nothing works there; skein repair recount of the queue writes new ones",
		"queue", shards[0].Queue, "count", len(shards), "shards", strings.Join(names, ", "))
}

// logRestored logs, in one line, how many shards of a queue had lost their records and have new
// ones.
func (s *Store) logRestored(queue string, count int) {
	if count > 0 {
		s.logger.Warn("shards that had lost their records have new ones; their jobs may be lost",
			"queue", queue, "count", count)
	}
}

// Declare implements [ports.Producer]. It writes the record of the queue, which is authoritative,
// and then that of each shard. So the next Declare completes an interrupted one. A Forget in
// between leaves shards without a queue, and a Pause skips shards without a record. So Declare
// reads the queue's record again at the end, and starts anew if the record is gone or has changed.
func (s *Store) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	if err := r.Validate(); err != nil {
		return ports.DeclareReply{}, err
	}
	if err := s.ready(ctx); err != nil {
		return ports.DeclareReply{}, err
	}

	// The server with the list may be unreachable. Then the records of the shards decide.
	if s.link.OnCluster() && !s.server.done.Load() {
		if kept, none := s.keptByShards(ctx, r.Queue, exchange.LongestPatience); none == nil {
			return declaredBefore(r, kept)
		}
	}

	for {
		declared, err := s.declare(ctx, r)
		if errors.Is(err, errListAway) {
			if kept, none := s.keptByShards(ctx, r.Queue, exchange.LongestPatience); none == nil {
				return declaredBefore(r, kept)
			}
		}
		if err != nil {
			return ports.DeclareReply{}, err
		}

		q, err := s.queue(ctx, r.Queue)
		if err == nil {
			err = q.check(declared.layout())
		}
		if err == nil && q.version != declared.version || errors.Is(err, ports.ErrUnknownQueue) {
			continue
		}
		return ports.DeclareReply{Generation: declared.Generation}, err
	}
}

// declaredBefore is the reply for a queue whose shards have its record, while the list of queues
// can't be reached. It writes nothing: a shard without a record has its next call declare the
// queue again.
func declaredBefore(r ports.DeclareRequest, kept queueRecord) (ports.DeclareReply, error) {
	if err := storekit.CheckDeclared(r, kept.Queue); err != nil {
		return ports.DeclareReply{}, err
	}
	return ports.DeclareReply{Generation: kept.Generation}, nil
}

// declare stores the queue's record and those of its shards, and returns the queue's record as it
// is then.
func (s *Store) declare(ctx context.Context, r ports.DeclareRequest) (queueRecord, error) {
	asking, cancel := ctx, context.CancelFunc(func() {})
	if s.link.OnCluster() {
		asking, cancel = context.WithTimeout(ctx, exchange.Patience(ctx, exchange.LongestPatience))
	}
	defer cancel()

	q, err := s.declareRecord(asking, r, "")
	if s.link.OnCluster() && err != nil && !storekit.HasKnownOutcome(err) && ctx.Err() == nil {
		if asking.Err() != nil && errors.Is(err, asking.Err()) {
			err = exchange.ErrStraggler // the deadline was not the caller's
		}
		return queueRecord{}, fmt.Errorf("%w: %w", errListAway, err)
	}

	// The queue may have lost its record. Then its shards still have it.
	if errors.Is(err, ports.ErrUnknownQueue) {
		var kept queueRecord
		switch kept, err = s.keptByShards(ctx, r.Queue, exchange.LongestPatience); {
		case err == nil:
			q, err = s.declareKept(ctx, kept)
		case errors.Is(err, ports.ErrUnknownQueue):
			q, err = s.declareRecord(ctx, r, "new")
		}
	}
	if err != nil {
		return queueRecord{}, err
	}

	if err := storekit.CheckDeclared(r, q.Queue); err != nil {
		return queueRecord{}, err
	}

	restored, err := s.declareShards(ctx, q)
	s.logRestored(q.Name, restored)
	return q, err
}

// declareRecord stores the queue's record if it has none, as declare.lua describes, and returns
// the stored one. It returns ErrUnknownQueue if there is no record and kept is "".
func (s *Store) declareRecord(ctx context.Context, r ports.DeclareRequest, kept string) (queueRecord, error) {
	value, err := s.run(ctx, exchange.Call{
		Script: declareScript,
		Keys:   []any{s.queuesKey()},
		Args: []any{
			r.Queue, r.Shards, boolArg(r.IndexIDs), storedFormat, oldestReader,
			s.now(), kept, ruleArg(r.Merge), rand.Text(),
		},
	})
	if err != nil {
		return queueRecord{}, err
	}
	if value == nil {
		return queueRecord{}, storekit.UnknownQueue(r.Queue)
	}

	// A reply of two numbers is a stored format that only newer programs may use.
	text, _ := value.(string)
	if strings.Count(text, " ") == 1 {
		return queueRecord{}, fitsFormat(s.prefix, text)
	}
	s.server.ours.Store(true)
	return parseQueueRecord(r.Queue, text)
}

// queueOrKept returns a queue's record, or the one that its shards have kept if the queue's own is
// lost or can't be read.
func (s *Store) queueOrKept(ctx context.Context, name string, patience time.Duration) (queueRecord, error) {
	q, err := s.queue(ctx, name)
	if !errors.Is(err, ports.ErrUnknownQueue) && !errors.Is(err, record.ErrStored) {
		return q, err
	}
	kept, none := s.keptByShards(ctx, name, patience)
	if errors.Is(none, ports.ErrUnknownQueue) {
		return q, err
	}
	kept.Settings = q.Settings
	return kept, none
}

// declareKept stores a record that the shards of a queue have kept, unless the queue has its own.
func (s *Store) declareKept(ctx context.Context, kept queueRecord) (queueRecord, error) {
	q, err := s.declareRecord(ctx, ports.DeclareRequest{
		Queue:    kept.Name,
		Shards:   kept.Shards,
		IndexIDs: kept.IndexIDs,
	}, kept.text)
	q.kept = true
	return q, err
}

// keptByShards returns the record of a queue that has lost its own: the newest that its first
// shards have. It returns ErrUnknownQueue if no shard has one. Once a master of a Cluster has
// answered, the others have the given patience to answer too.
func (s *Store) keptByShards(ctx context.Context, name string, patience time.Duration) (queueRecord, error) {
	var kept queueRecord
	var failed error

	for _, o := range s.runApartBy(
		ctx,
		exchange.Apart{Most: shardsPerExchange, Patience: patience},
		s.shardRecordCalls(name),
	) {
		text, found := o.Value.(string)
		if o.Err != nil && (!s.link.OnCluster() || storekit.HasKnownOutcome(o.Err)) {
			failed = cmp.Or(failed, o.Err)
		}
		if o.Err != nil || !found {
			continue
		}

		q, err := parseQueueRecord(name, text)
		if err != nil {
			continue
		}

		s.server.ours.Store(true)
		if kept.text == "" || q.version > kept.version {
			kept = q
			kept.kept = true
		}
	}

	if kept.text == "" {
		return kept, cmp.Or(failed, storekit.UnknownQueue(name))
	}
	return kept, nil
}

// shardRecordCalls read the records of a queue's first shards.
func (s *Store) shardRecordCalls(name string) []exchange.Call {
	var calls []exchange.Call
	for _, shard := range core.Shards(name, shardsToAsk) {
		calls = append(calls, exchange.Call{Command: "get", Keys: s.someKeys(shard, keyMeta)})
	}
	return calls
}

// declareShards stores the record of each shard that has none, or an older one. Shards whose
// master can't be reached now are skipped: a caller that meets one without a record declares the
// queue again. A shard that has lost its record is skipped and logged, and is no error for the
// others. If the queue has lost its own record as well, the shard is made anew; restored is the
// number of these shards.
func (s *Store) declareShards(ctx context.Context, q queueRecord) (restored int, err error) {
	shards := core.Shards(q.Name, q.Shards)
	calls := make([]exchange.Call, len(shards))
	for i, shard := range shards {
		calls[i] = exchange.Call{
			Script: declareShardScript,
			Keys:   s.someKeys(shard, keyMeta),
			Args:   []any{q.text, boolArg(q.whole || q.kept)},
		}
	}

	all := true
	var lost []core.Shard
	defer func() { s.logLost(lost) }()
	var failure error
	for i, o := range s.runApart(ctx, calls) {
		if o.Err != nil && (!s.link.OnCluster() || storekit.HasKnownOutcome(o.Err)) {
			return restored, o.Err
		}

		err := o.Err
		r := record.ReplyOf(o.Value)
		switch text := r.Text(); {
		case err != nil:
		case text == "layout":
			err = mismatched(&r, q.Name, q.layout())
			failure = cmp.Or(failure, err)
		case text == "torn":
			err = lostRecord(shards[i])
			if q.kept {
				var made bool
				if made, err = s.restoreShard(ctx, q, shards[i]); made {
					restored++
				}
			}
			if errors.Is(err, ErrLostRecord) {
				lost = append(lost, shards[i])
			}
		}

		all = all && err == nil
	}

	if failure != nil || q.whole || !all {
		return restored, failure
	}

	// From now on, a shard without a record has lost it.
	_, err = s.run(ctx, exchange.Call{Script: declaredScript, Keys: []any{s.queuesKey()}, Args: []any{q.Name, q.text}})
	return restored, err
}

// shardsPerExchange is the largest number of scripts in one exchange, each short and for one
// shard: a server runs all of them before it answers any other client.
const shardsPerExchange = 64

// eachShard runs a short script on every shard of a queue and calls use with the replies in order.
// It ends with the first error.
func (s *Store) eachShard(
	ctx context.Context,
	q queueRecord,
	on func(core.Shard) exchange.Call,
	use func(core.Shard, any) error,
) error {
	for shards := range slices.Chunk(core.Shards(q.Name, q.Shards), shardsPerExchange) {
		calls := make([]exchange.Call, len(shards))
		for i, shard := range shards {
			calls[i] = on(shard)
		}

		for i, o := range s.runAll(ctx, calls) {
			if o.Err != nil {
				return o.Err
			}
			if err := use(shards[i], o.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
