package redis

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// ChangeSchedules implements [ports.Calendar]. One script handles the first changes whose entries
// are at most 500 of at most 8 MiB, if the records that it reads have at most 8 MiB, and at least
// one change. Changes that only remove schedules pass on a full server. The client does not repeat
// the call after an error of unknown outcome, because the repeated call would refuse what the first
// has applied.
func (s *Store) ChangeSchedules(ctx context.Context, r ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
	if err := r.Validate(); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	asked := storekit.Layout{Shards: r.Shards, Generation: r.Generation}
	call, err := s.changeCall(&r, asked)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	value, err := s.run(ctx, call)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	switch reply := record.ReplyOf(value); reply.Text() {
	case "ok":
		return changesOf(&reply, len(r.Changes))
	case "unknown":
		return ports.ChangeSchedulesReply{}, s.noShard(ctx, r.Shard, asked)
	case "mismatch":
		return ports.ChangeSchedulesReply{}, mismatched(&reply, r.Shard.Queue, asked)
	}
	return ports.ChangeSchedulesReply{}, record.ErrReply
}

// changeCall returns the call for the first changes.
func (s *Store) changeCall(r *ports.ChangeSchedulesRequest, asked storekit.Layout) (exchange.Call, error) {
	call := exchange.Call{
		Script:  removeSchedulesScript,
		Keys:    s.someKeys(r.Shard, keyMeta, keyJobs, keyReady, keyClaims, keySchedules, keyTicks, keyScheduleNames),
		Args:    []any{s.now(), layoutText(asked), boolArg(r.Firing)},
		NoRetry: true,
		Durable: true,
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		args, size, err := changeArgs(c)
		if err != nil {
			return call, err
		}
		if i > 0 && (call.Entries+len(c.Entries) > pushEntries || call.Size+size > core.MaxStepBytes) {
			break
		}
		if c.Schedule != nil {
			call.Script = changeSchedulesScript
		}
		call.Args = append(call.Args, args...)
		call.Entries, call.Size = call.Entries+len(c.Entries), call.Size+size
	}
	return call, nil
}

// changeArgs returns a change as the script takes it, and the size of its texts.
func changeArgs(c *ports.ScheduleChange) (args []any, size int, err error) {
	next, tick, err := scheduleArgs(c.Schedule)
	if err != nil {
		return nil, 0, err
	}
	busy, busyTick, err := scheduleArgs(c.Busy)
	if err != nil {
		return nil, 0, err
	}
	size = len(c.ID) + len(c.Name) + len(next) + len(busy)

	var times []byte
	args = []any{c.ID, c.Name, c.Revision, next, tick, busy, busyTick, nil, len(c.Entries)}
	for i := range c.Entries {
		e := &c.Entries[i]
		times = appendWhen(times, e.When)
		packed := record.AppendPacked(nil, &e.Payload, e.Tags)
		size += len(packed)
		args = append(args, packed)
	}
	args[7] = times
	return args, size, nil
}

// scheduleArgs returns the record of a schedule and its tick as scripts take them: "" for none.
func scheduleArgs(s *core.Schedule) (text, tick string, err error) {
	if s == nil {
		return "", "", nil
	}
	if head := s.Head(); head.OK {
		tick = strconv.FormatInt(int64(head.Due), 10)
	}
	text, err = storekit.EncodeSchedule(s)
	return text, tick, err
}

// changesOf reads the script's reply to the given number of changes, behind its first word.
func changesOf(r *record.Reply, given int) (ports.ChangeSchedulesReply, error) {
	reply := ports.ChangeSchedulesReply{Now: core.Instant(r.Int()), Head: r.Head()}
	pushed := int(r.Int())
	reply.Met = ports.PushReply{Now: reply.Now, New: int(r.Int()), Merged: int(r.Int()), Superseded: int(r.Int())}
	reply.Met.Duplicate = pushed - reply.Met.New - reply.Met.Merged - reply.Met.Superseded
	for r.More() {
		reply.Results = append(reply.Results, ports.ScheduleResult(r.Int()))
	}

	handled := len(reply.Results)
	if r.Err() != nil || handled > given || handled == 0 && given > 0 || reply.Met.Duplicate < 0 {
		return ports.ChangeSchedulesReply{}, record.ErrReply
	}
	return reply, nil
}

// Ticks implements [ports.Calendar]. A shard returns its first due schedules up to about a MiB, and
// at least one. Ticks writes nothing, but sets aside a due record that can't be read, since no
// server could fire it.
func (s *Store) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	calls := make([]exchange.Call, len(r.Shards))
	for i, shard := range r.Shards {
		calls[i] = exchange.Call{
			Script: ticksScript,
			Keys:   s.someKeys(shard, keyMeta, keySchedules, keyTicks),
			Args:   []any{s.now(), r.Size()},
		}
	}

	reply := ports.TicksReply{Shards: make([]ports.ShardTicks, len(r.Shards))}
	var failure error
	for i, o := range s.runApart(ctx, calls) {
		ticks, err := s.ticks(ctx, r.Shards[i], &calls[i], o)
		switch {
		case err == nil:
			reply.Shards[i] = ticks
		case storekit.HasKnownOutcome(err):
			return ports.TicksReply{}, err
		default:
			reply.Unreached, failure = append(reply.Unreached, r.Shards[i]), cmp.Or(failure, err)
		}
	}
	if failure != nil && len(reply.Unreached) == len(r.Shards) {
		return ports.TicksReply{}, failure
	}
	return reply, nil
}

// ticks returns the ticks of a shard whose call has the given outcome. If some due records can't be
// read, it sets them aside and calls again.
func (s *Store) ticks(ctx context.Context, shard core.Shard, call *exchange.Call, o exchange.Outcome) (ports.ShardTicks, error) {
	var (
		ticks  ports.ShardTicks
		faults []*exchange.DamagedError
	)
	for range mostSetAside {
		if o.Err != nil {
			return ticks, o.Err
		}
		if noRecord(&o) {
			return ticks, s.absent(ctx, shard)
		}
		var err error
		if ticks, faults, err = ticksOf(o.Value); err != nil || len(faults) == 0 {
			return ticks, err
		}
		if err := s.setAllAside(ctx, call.Keys[0].(string), faults); err != nil {
			return ticks, err
		}
		o = s.runApart(ctx, []exchange.Call{*call})[0]
	}
	return ticks, faults[0]
}

// ticksOf reads the reply of the ticks script. It returns the schedules that it can't read as
// faults.
func ticksOf(value any) (ticks ports.ShardTicks, faults []*exchange.DamagedError, err error) {
	r := record.ReplyOf(value)
	_ = r.Text()
	ticks = ports.ShardTicks{Now: core.Instant(r.Int()), Head: r.Head()}
	for r.More() {
		field := r.Text()
		text, _ := r.Optional()
		schedule, err := scheduleOf(field, text)
		if err != nil {
			faults = append(faults, &exchange.DamagedError{Place: record.PlaceSchedule, ID: field, Stored: text, Text: err.Error()})
			continue
		}
		ticks.Due = append(ticks.Due, schedule)
	}
	return ticks, faults, r.Err()
}

// errNotItsRecord is the reason for a record that can be decoded, and is still damaged.
var errNotItsRecord = errors.New("it is not of its id and name, or has no revision")

// scheduleOf reads the record of a field.
func scheduleOf(field, text string) (core.Schedule, error) {
	schedule, err := storekit.DecodeSchedule(text)
	if err == nil && (storekit.ScheduleByID(schedule.ScheduleKey) != field || schedule.Revision < 1) {
		err = errNotItsRecord
	}
	return schedule, err
}

// Schedules implements [ports.Calendar].
func (s *Store) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	q, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.SchedulesPage{}, err
	}
	look := scheduleLooker{store: s, r: &r, pager: storekit.NewPager[storekit.Listed](storekit.SchedulePageRequest(&r), true)}
	looked := shards
	if r.ID != "" {
		own := core.Shard{Queue: q.Name, Index: core.ShardOf(r.ID, q.Shards)}
		looked = slices.DeleteFunc(slices.Clone(shards), func(shard core.Shard) bool { return shard != own })
	}

	var lost storekit.Lost
	if len(looked) > 0 {
		if err := storekit.FindPlaces(ctx, look.pager, looked, &lost, look.look); err != nil {
			return ports.SchedulesPage{}, err
		}
	}
	places, next := look.pager.Page()
	keys := make([]core.ScheduleKey, len(places))
	for i, p := range places {
		keys[i] = storekit.ScheduleOfName(p.At.ID)
	}
	read, err := s.readSchedules(ctx, q, shards, keys, &lost)
	if err != nil {
		return ports.SchedulesPage{}, err
	}

	page := ports.SchedulesPage{Now: read.now, Next: storekit.ScheduleOfName(next.ID)}
	for _, key := range keys {
		if schedule, ok := read.byKey[key]; ok {
			page.Schedules = append(page.Schedules, schedule)
		}
	}
	page.Unreached, err = lost.Shards(len(shards))
	return page, err
}

// scheduleLooker finds the places of a page of schedules.
type scheduleLooker struct {
	store *Store
	r     *ports.SchedulesRequest
	pager *storekit.Pager[storekit.Listed]
}

// look finds the first places of shards, by plain commands.
func (l *scheduleLooker) look(ctx context.Context, asks []storekit.Ask) []storekit.Answer {
	from, to := l.bounds()
	calls := make([]exchange.Call, len(asks))
	for i, ask := range asks {
		calls[i] = exchange.Call{
			Command: "zrange",
			Keys:    l.store.someKeys(ask.Shard, keyScheduleNames),
			Args:    []any{from, to, "bylex", "limit", 0, ask.Most},
		}
	}

	answers := make([]storekit.Answer, len(asks))
	for i, o := range l.store.runApartBy(ctx, plainApart, calls) {
		if o.Err != nil {
			answers[i].Err = o.Err
			continue
		}
		reply := record.ReplyOf(o.Value)
		for _, at := range reply.Members(false) {
			answers[i].Places = append(answers[i].Places, ports.Cursor{ID: placeOfSchedule(at.ID)})
		}
		answers[i].More, answers[i].Err = len(answers[i].Places) >= asks[i].Most, reply.Err()
	}
	return answers
}

// bounds returns the first and the last member of the shards' lists for the page, as
// lua/lib/schedules.lua has them.
func (l *scheduleLooker) bounds() (from, to string) {
	if l.r.ID != "" {
		return l.boundsOfID()
	}

	start := l.pager.Start()
	from, to = "[n", "(o"
	switch {
	case start.Behind && start.Inclusive:
		from = "[n" + start.At.ID
	case start.Behind:
		from = "(n" + start.At.ID
	}
	if l.r.Name != "" {
		to = "(n" + l.r.Name + "\x01"
	}
	return from, to
}

// boundsOfID is bounds for the schedules of one id, which are in order of name.
func (l *scheduleLooker) boundsOfID() (from, to string) {
	member := func(name string) string {
		return "i" + storekit.ScheduleByID(core.ScheduleKey{ID: l.r.ID, Name: name})
	}
	start, r := l.pager.Start(), l.r

	from, to = "["+member(r.After.Name), "(i"+r.ID+"\x01"
	if start.Behind && !start.Inclusive && r.After.ID >= r.ID {
		from = "(" + member(r.After.Name)
	}
	if r.Name != "" {
		to = "[" + member(r.Name)
		if start.Inclusive {
			from = to
		}
	}
	return from, to
}

// placeOfSchedule returns the place of a schedule in the order of the page, given its member of a
// shard's list.
func placeOfSchedule(member string) string {
	if byID, ok := strings.CutPrefix(member, "i"); ok {
		id, name, _ := strings.Cut(byID, "\x00")
		return storekit.ScheduleByName(core.ScheduleKey{ID: id, Name: name})
	}
	return strings.TrimPrefix(member, "n")
}

// schedulesRead are schedules that were read, and the store's time.
type schedulesRead struct {
	byKey map[core.ScheduleKey]core.Schedule
	now   core.Instant
}

// readSchedules reads the schedules of keys. It leaves out those that are gone or can't be read. If
// there are no keys, it only reads the time of the first shard that can be reached.
func (s *Store) readSchedules(ctx context.Context, q queueRecord, shards []core.Shard, keys []core.ScheduleKey, lost *storekit.Lost) (schedulesRead, error) {
	fields := make(map[core.Shard][]any)
	for _, key := range keys {
		shard := core.Shard{Queue: q.Name, Index: core.ShardOf(key.ID, q.Shards)}
		fields[shard] = append(fields[shard], storekit.ScheduleByID(key))
	}
	asked := slices.DeleteFunc(slices.Clone(shards), func(shard core.Shard) bool { return lost.Has(shard) || len(keys) > 0 && fields[shard] == nil })
	if len(keys) == 0 {
		asked = asked[:min(1, len(asked))]
	}
	calls := make([]exchange.Call, len(asked))
	for i, shard := range asked {
		calls[i] = exchange.Call{
			Script: schedulesScript,
			Keys:   s.someKeys(shard, keyMeta, keySchedules),
			Args:   append([]any{s.now()}, fields[shard]...),
		}
	}

	read := schedulesRead{byKey: make(map[core.ScheduleKey]core.Schedule, len(keys))}
	for i, o := range s.runApartBy(ctx, scriptApart, calls) {
		err := o.Err
		if err == nil && noRecord(&o) {
			err = s.absent(ctx, asked[i])
		}
		if err == nil {
			err = read.add(o.Value, fields[asked[i]])
		}
		if err == nil {
			continue
		}
		if err := lost.Add(ctx, asked[i], err); err != nil {
			return read, err
		}
	}
	return read, nil
}

// add adds the schedules of fields, given the reply of the schedules script.
func (s *schedulesRead) add(value any, fields []any) error {
	r := record.ReplyOf(value)
	_ = r.Text()
	s.now = core.Instant(r.Int())
	for _, field := range fields {
		text, there := r.Optional()
		if !there {
			continue
		}
		if schedule, err := scheduleOf(field.(string), text); err == nil {
			s.byKey[schedule.ScheduleKey] = schedule
		}
	}
	return r.Err()
}

// ScheduleNames implements [ports.Calendar]. If the First of a name can't be read, it has only its
// key.
func (s *Store) ScheduleNames(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
	q, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}
	var lost storekit.Lost
	page, err := s.findNames(ctx, &r, shards, &lost)
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}

	keys := make([]core.ScheduleKey, len(page.Names))
	for i := range page.Names {
		keys[i] = page.Names[i].First.ScheduleKey
	}
	if len(keys) > 0 {
		read, err := s.readSchedules(ctx, q, shards, keys, &lost)
		if err != nil {
			return ports.ScheduleNamesPage{}, err
		}
		for i, key := range keys {
			if first, ok := read.byKey[key]; ok {
				page.Names[i].First = first
			}
		}
	}
	page.Unreached, err = lost.Shards(len(shards))
	return page, err
}

// findNames returns a page of names whose First have only their keys.
func (s *Store) findNames(ctx context.Context, r *ports.ScheduleNamesRequest, shards []core.Shard, lost *storekit.Lost) (page ports.ScheduleNamesPage, err error) {
	calls := make([]exchange.Call, len(shards))
	for i, shard := range shards {
		calls[i] = exchange.Call{
			Script: scheduleNamesScript,
			Keys:   s.someKeys(shard, keyMeta, keyScheduleNames),
			Args:   []any{s.now(), r.After, r.Size() + 1},
		}
	}

	var sums storekit.ScheduleNameSums
	for i, o := range s.runApartBy(ctx, scriptApart, calls) {
		err := o.Err
		if err == nil && noRecord(&o) {
			err = s.absent(ctx, shards[i])
		}
		if err == nil {
			page.Now, err = addNames(&sums, o.Value)
		}
		if err == nil {
			continue
		}
		if err := lost.Add(ctx, shards[i], err); err != nil {
			return page, err
		}
	}
	page.Names, page.Next = sums.Page(r.Size())
	return page, nil
}

// addNames adds the names of a shard, and returns the store's time.
func addNames(sums *storekit.ScheduleNameSums, value any) (core.Instant, error) {
	r := record.ReplyOf(value)
	_ = r.Text()
	now := core.Instant(r.Int())
	for r.More() {
		n := ports.ScheduleName{Name: r.Text(), Count: r.Int()}
		n.First.ScheduleKey = core.ScheduleKey{ID: r.Text(), Name: n.Name}
		sums.Add(n)
	}
	return now, r.Err()
}
