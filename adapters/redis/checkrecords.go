package redis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

const (
	// recordsPerLook is the maximum number of shards that one exchange reads.
	recordsPerLook = 256
	// recordsNamed is the maximum number of faults that a row names.
	recordsNamed = 5
)

// recordsRow reads the records of all queues and shards, and then, in the time that is left, the
// types of the shards' keys. Other read-only calls meet only some of these faults. A wrong record
// is read twice, because its queue may have just been forgotten and declared anew.
func (s *Store) recordsRow(ctx context.Context) ports.Check {
	row := ports.Check{Name: "records"}
	ctx, stop := context.WithTimeout(ctx, checkPatience)
	defer stop()

	found, err := s.readRecords(ctx, nil)
	if err == nil && len(found.wrong) > 0 {
		var again recordsFound
		if again, err = s.readRecords(ctx, found.wrong); err == nil {
			found.wrong, found.unread = again.wrong, max(found.unread, again.unread)
		}
	}

	untyped := ""
	if err == nil {
		if n := s.addWrongTypes(ctx, &found); n > 0 {
			untyped = fmt.Sprintf("; types of the keys of %d shards not looked at", n)
		}
	}

	switch {
	case len(found.wrong) > 0:
		var texts []string
		for _, name := range slices.Sorted(maps.Keys(found.wrong)) {
			fault := found.wrong[name]
			texts = append(texts, fault.text)
			row.Status, row.Refuses = max(row.Status, fault.status), row.Refuses || fault.refuses
		}

		row.Value = strings.Join(texts[:min(len(texts), recordsNamed)], "; ")
		if more := len(texts) - recordsNamed; more > 0 {
			row.Value += fmt.Sprintf("; and %d more", more)
		}
		row.Value += untyped
		row.Advice = "run skein repair recount with the queue's name: it writes the records again, " +
			"or names a key to delete or rename first; " +
			"if it reports another shard count, copy the record of another shard of the queue by hand"
	case err != nil:
		row.Status, row.Value, row.Advice =
			ports.CheckUnknown, err.Error(), "see the other checks, or run the checks again"
	case found.unread > 0:
		row.Status, row.Advice = ports.CheckUnknown, "see the other checks, or run the checks again"
		row.Value = fmt.Sprintf("%d could not be read; the other %d are correct", found.unread, found.read) + untyped
	default:
		row.Value = fmt.Sprintf("all %d records of queues and shards can be read", found.read) + untyped
		if untyped != "" {
			row.Status, row.Advice = ports.CheckUnknown, "run the checks again when the store is less busy"
		}
	}
	return row
}

// recordFault is what is wrong with a queue or a shard.
type recordFault struct {
	text   string
	status ports.CheckStatus
	// refuses is true if pushes to the queue or the shard are refused.
	refuses bool
}

// wrongRecord returns the fault of a record, of a queue or a shard, with which pushes are refused.
func wrongRecord(of, why string) recordFault {
	return recordFault{"the record of " + of + " " + why, ports.CheckFail, true}
}

// recordsFound is the result of reading records.
type recordsFound struct {
	// wrong has the faults of queues and shards by their names in the text.
	wrong map[string]recordFault
	// read is the number of records that were read, and unread the number of those that could not
	// be read.
	read, unread int
	// shards are the shards whose records were read, and those that have no record.
	shards []core.Shard
}

// readRecords reads the records of queues and their shards, or only the given ones. Together with
// an error it returns what it has found so far.
func (s *Store) readRecords(ctx context.Context, among map[string]recordFault) (recordsFound, error) {
	found := recordsFound{wrong: make(map[string]recordFault)}
	queues, unread, err := s.readQueues(ctx)
	if err != nil {
		return found, err
	}

	found.read = len(queues) + len(unread)
	for name, record := range unread {
		found.wrong["the queue "+name] = wrongRecord(
			"the queue "+name,
			fmt.Sprintf("can't be read: %q", core.CutText(record, 40)),
		)
	}

	var all []core.Shard
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		q := queues[name]
		if q.Settings.Broken {
			found.wrong[settingsField(name)] = recordFault{
				"the settings of the queue " + name + " can't be read: servers keep those that they have read, " +
					"and start with the options of their code: " +
					"set one of them again, which replaces them",
				ports.CheckWarn, false,
			}
		}
		if !q.forgetting {
			all = append(all, core.Shards(name, q.Shards)...)
		}
	}
	if among != nil {
		all = slices.DeleteFunc(all, func(shard core.Shard) bool { return among[shard.String()] == (recordFault{}) })
	}

	if _, err := s.addShards(ctx, &found, queues, all); err != nil {
		return found, err
	}
	return found, s.addLostQueues(ctx, &found, queues, among)
}

// addShards adds the results for the records of some shards, whose queues have the given records.
// It returns the number of shards that have lost theirs.
func (s *Store) addShards(
	ctx context.Context,
	found *recordsFound,
	queues map[string]queueRecord,
	all []core.Shard,
) (lost int, err error) {
	for shards := range slices.Chunk(all, recordsPerLook) {
		replies, err := s.getRecords(ctx, shards)
		if err != nil {
			return lost, err
		}

		for i, reply := range replies {
			q := queues[shards[i].Queue]
			fault, ok, err := faultOfRecord(&q, shards[i], reply)
			switch {
			case err != nil:
				found.unread++
				continue
			case ok:
				found.read++
			case fault != (recordFault{}):
				lost++
			}
			found.shards = append(found.shards, shards[i])
			if fault != (recordFault{}) {
				found.wrong[shards[i].String()] = fault
			}
		}
	}
	return lost, nil
}

// addLostQueues adds the queues that a server has announced within [ports.NodeKept], and whose
// shards have a record although the list of queues has none.
func (s *Store) addLostQueues(
	ctx context.Context,
	found *recordsFound,
	queues map[string]queueRecord,
	among map[string]recordFault,
) error {
	reply, err := s.Nodes(ctx)
	if err != nil {
		return err
	}

	announced := make(map[string]bool)
	for i := range reply.Nodes {
		for _, name := range reply.Nodes[i].Queues {
			announced[name] = true
		}
	}

	for name := range announced {
		key := "the queue " + name
		_, listed := queues[name]
		if listed || found.wrong[key] != (recordFault{}) || among != nil && among[key] == (recordFault{}) {
			continue
		}

		kept, err := s.keptByShards(ctx, name, checkPatience)
		if errors.Is(err, ports.ErrUnknownQueue) {
			continue
		}
		if err == nil {
			err = s.addLostQueue(ctx, found, kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addLostQueue adds a queue whose record only its shards have kept, and those of its shards that
// have lost theirs as well.
func (s *Store) addLostQueue(ctx context.Context, found *recordsFound, kept queueRecord) error {
	kept.whole = true // a server has announced the queue, and servers declare their queues first
	lost, err := s.addShards(ctx, found, map[string]queueRecord{kept.Name: kept}, core.Shards(kept.Name, kept.Shards))
	if err != nil {
		return err
	}

	key := "the queue " + kept.Name
	text := "the record of " + key + " is lost, but its shards have theirs"
	if lost > 0 {
		text = fmt.Sprintf("the record of %s is lost, and %d of its %d shards have lost theirs", key, lost, kept.Shards)
	}
	found.wrong[key] = recordFault{text, ports.CheckWarn, false}
	return nil
}

// typedKeys are the keys of a shard that are hashes, read with HLEN, and those that are sorted
// sets, read with ZCARD.
var typedKeys = [...]struct {
	command, kind string
	keys          []int
}{
	{"hlen", "hash", []int{
		keyJobs, keyClaims, keyMetas, keyDead, keyDeadMetas, keyGroups, keyLease, keyCancels, keyAside,
	}},
	{"zcard", "sorted set", []int{
		keyReady, keyParked, keyByID, keyRetriesByTime, keyRetriesByID, keyRetriesByCount, keyDeadByTime, keyDeadByID,
	}},
}

// getRecords reads the records of some shards; each reply has its own error. It fails if ctx ends
// first.
func (s *Store) getRecords(ctx context.Context, shards []core.Shard) ([]*goredis.StringCmd, error) {
	return exchange.Await(ctx, s.link, func() []*goredis.StringCmd {
		replies := make([]*goredis.StringCmd, len(shards))
		pipe := s.client.Pipeline()
		for i, shard := range shards {
			replies[i] = pipe.Get(ctx, s.keys(shard)[keyMeta].(string))
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		return replies
	})
}

// faultOfRecord returns what is wrong with the record of a queue's shard, or the zero value. there
// is true if the shard has a record. It returns an error if the record was not read.
func faultOfRecord(
	q *queueRecord,
	shard core.Shard,
	reply *goredis.StringCmd,
) (fault recordFault, found bool, err error) {
	switch err := reply.Err(); {
	case goredis.HasErrorPrefix(err, wrongType):
		return wrongRecord(shard.String(), "can't be read: "+err.Error()), true, nil
	case errors.Is(err, goredis.Nil) && q.whole:
		return wrongRecord(shard.String(), "is lost"), false, nil
	case errors.Is(err, goredis.Nil):
		return recordFault{}, false, nil
	case err != nil:
		return recordFault{}, false, err
	}
	return recordOfAnother(q, shard, reply.Val()), true, nil
}

// addWrongTypes adds the shards that have a key of another type to those with a wrong record. It
// returns the number of shards whose keys it has not looked at, because ctx has ended or their
// server has not answered.
func (s *Store) addWrongTypes(ctx context.Context, found *recordsFound) (unseen int) {
	right := slices.DeleteFunc(found.shards, func(shard core.Shard) bool {
		return found.wrong[shard.String()] != (recordFault{})
	})
	unseen = len(right)
	leases := leasesFound{served: make(map[string][]core.Shard), without: make(map[string][]core.Shard)}
	defer func() { s.addLostLeases(ctx, found, &leases) }()

	for shards := range slices.Chunk(right, recordsPerLook) {
		sizes, err := s.lookAtKeys(ctx, shards)
		if err != nil {
			return unseen
		}

		for i, shard := range shards {
			fault, err := wrongKey(shard, sizes[i])
			if err == nil {
				unseen--
				leases.add(shard, sizes[i])
			}
			if fault != (recordFault{}) {
				found.wrong[shard.String()] = fault
			}
		}
	}
	return unseen
}

// leasesFound are the shards of queues that have a lease record, and those that have none.
type leasesFound struct{ served, without map[string][]core.Shard }

func (l *leasesFound) add(shard core.Shard, sizes []keySize) {
	at := slices.IndexFunc(sizes, func(size keySize) bool { return size.key == keyLease })
	if fields, _ := sizes[at].reply.Int64(); fields > 0 {
		l.served[shard.Queue] = append(l.served[shard.Queue], shard)
	} else {
		l.without[shard.Queue] = append(l.without[shard.Queue], shard)
	}
}

// servedFor is for how long other shards of a queue must have been served before a shard that has
// no lease record counts as one that has lost it. A server that starts acquires its shards within
// that time.
const servedFor = time.Minute

// addLostLeases adds shards that have no lease record although other shards of their queue have
// been served for a while. The record has the shard's counts of processed and failed jobs too.
func (s *Store) addLostLeases(ctx context.Context, found *recordsFound, leases *leasesFound) {
	for queue, without := range leases.without {
		served := leases.served[queue]
		if len(served) == 0 || !s.servedLong(ctx, served[0]) {
			continue
		}

		for _, shard := range without {
			text := fmt.Sprintf(
				"%v has no lease record although other shards of its queue are served: if it was served before, "+
					"its counts of processed and failed jobs are lost",
				shard,
			)
			found.wrong[shard.String()] = recordFault{text, ports.CheckWarn, false}
		}
	}
}

// servedLong reports whether the lease of a shard began more than servedFor ago. A token is the
// time of its acquire, in microseconds, or one more than the token before.
func (s *Store) servedLong(ctx context.Context, shard core.Shard) bool {
	key := s.keys(shard)[keyLease].(string)
	token, err := exchange.Ask(ctx, s.link, goredis.NewStringCmd(ctx, "hget", key, "token"))
	if err != nil {
		return false
	}
	began, err := strconv.ParseInt(token, 10, 64)
	return err == nil && time.Since(core.Instant(began).Time()) > servedFor
}

// keySize is the reply to the command for the size of a key.
type keySize struct {
	name, kind string
	key        int
	reply      *goredis.Cmd
}

// lookAtKeys reads the sizes of the keys of some shards in one exchange; each reply has its own
// error. It fails if ctx ends first. It uses only commands that the scripts need too, since a user
// may have no right to others, such as TYPE.
func (s *Store) lookAtKeys(ctx context.Context, shards []core.Shard) ([][]keySize, error) {
	return exchange.Await(ctx, s.link, func() [][]keySize {
		sizes := make([][]keySize, len(shards))
		pipe := s.client.Pipeline()
		for i, shard := range shards {
			names := s.keys(shard)
			for _, typed := range typedKeys {
				for _, key := range typed.keys {
					sizes[i] = append(sizes[i], keySize{
						names[key].(string),
						typed.kind,
						key,
						pipe.Do(ctx, typed.command, names[key]),
					})
				}
			}
		}

		_, _ = pipe.Exec(ctx) // each command has its own error
		return sizes
	})
}

// wrongKey returns the fault of the first key of a shard that has another type, or the zero value.
// If there is no such key, it returns an error if a key was not read.
func wrongKey(shard core.Shard, sizes []keySize) (recordFault, error) {
	var unread error
	for i := range sizes {
		size := &sizes[i]
		err := size.reply.Err()
		if goredis.HasErrorPrefix(err, wrongType) {
			// The other keys are of dead letters, cancels and set-aside records, which pushes don't touch.
			refuses := size.key < queueKeys || size.key == keyLease
			return recordFault{
				fmt.Sprintf("the key %s of %v is not a %s", size.name, shard, size.kind),
				ports.CheckFail,
				refuses,
			}, nil
		}
		if err != nil {
			unread = err
		}
	}
	return recordFault{}, unread
}

// wrongType begins Redis's error for a command on a key of another type.
const wrongType = "WRONGTYPE"

// recordOfAnother returns the fault of a shard's record that can't be read, that does not have the
// layout of its queue, or that differs from the queue's.
func recordOfAnother(q *queueRecord, shard core.Shard, text string) recordFault {
	record, err := parseQueueRecord(q.Name, text)
	switch {
	case err != nil:
		return wrongRecord(shard.String(), fmt.Sprintf("can't be read: %q", core.CutText(text, 40)))
	case record.layout() != q.layout():
		return wrongRecord(
			shard.String(),
			fmt.Sprintf("has %d shards in generation %d, but its queue has %d in generation %d",
				record.Shards, record.Generation, q.Shards, q.Generation),
		)
	case record.version < q.version:
		return recordFault{
			fmt.Sprintf("%v has missed the last pause, resume or merge rule of its queue", shard),
			ports.CheckWarn,
			false,
		}
	case record.text != q.text:
		return recordFault{
			fmt.Sprintf("the queue %s has lost a pause, resume or merge rule that %v has", q.Name, shard),
			ports.CheckWarn,
			false,
		}
	}
	return recordFault{}
}
