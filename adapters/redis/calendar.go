package redis

import (
	"cmp"
	"context"
	"fmt"
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
func (s *Store) ChangeSchedules(
	ctx context.Context,
	r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	if err := r.Validate(); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	if _, err := s.setUnreadableAside(ctx, &r, nil); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	reply, err := s.changeSchedules(ctx, &r)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	// A refusal may be due to a record that scripts can read, and lists can't. If that can't be
	// found out, it stays one.
	if moved, err := s.setUnreadableAside(ctx, &r, reply.Results); err == nil && moved {
		storekit.RepeatRefused(&r, &reply, func(
			again *ports.ChangeSchedulesRequest,
		) (ports.ChangeSchedulesReply, error) {
			return s.changeSchedules(ctx, again)
		})
	}
	return reply, nil
}

// changeSchedules changes schedules by one call of the script.
func (s *Store) changeSchedules(
	ctx context.Context,
	r *ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	asked := storekit.Layout{Shards: r.Shards, Generation: r.Generation}
	call, err := s.changeCall(r, asked)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	value, err := s.run(ctx, call)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	switch reply := record.ReplyOf(value); reply.Text() {
	case "ok":
		return parseChanges(&reply, len(r.Changes))
	case "unknown":
		return ports.ChangeSchedulesReply{}, s.noShard(ctx, r.Shard, asked)
	case "mismatch":
		return ports.ChangeSchedulesReply{}, mismatched(&reply, r.Shard.Queue, asked)
	}
	return ports.ChangeSchedulesReply{}, record.ErrReply
}

// setUnreadableAside sets the records of changes aside that can't be read: those of the changes
// that were refused, or without results those of the changes by any revision, which no refusal
// shows. It reports whether there were any.
func (s *Store) setUnreadableAside(
	ctx context.Context,
	r *ports.ChangeSchedulesRequest,
	results []ports.ScheduleResult,
) (moved bool, err error) {
	call := exchange.Call{
		Script: schedulesScript,
		Keys:   s.someKeys(r.Shard, keyMeta, keySchedules),
		Args:   []any{s.now()},
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		if results == nil && c.Revision == ports.AnyRevision ||
			i < len(results) && results[i] == ports.ScheduleRefused {
			call.Args = append(call.Args, storekit.ScheduleByID(c.ScheduleKey))
		}
	}
	fields := call.Args[1:]
	if len(fields) == 0 {
		return false, nil
	}
	value, err := s.run(ctx, call)
	if err != nil {
		return false, err
	}

	reply := record.ReplyOf(value)
	if reply.Text() != "ok" {
		return false, nil // the change reports why
	}
	_ = reply.Int()
	var faults []*exchange.DamagedError
	for _, field := range fields {
		text, found := reply.Optional()
		if _, err := parseSchedule(field.(string), text); found && err != nil {
			faults = append(faults, unreadable(field.(string), text, err))
		}
	}
	if err := reply.Err(); err != nil || len(faults) == 0 {
		return false, err
	}
	return true, s.setAllAside(ctx, call.Keys[keyMeta].(string), faults)
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
		packed := record.AppendPushed(nil, &e.Payload, e.Tags)
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
	text, err = storekit.EncodeSchedule(s)
	return text, tickArg(s), err
}

// tickArg returns the tick of a schedule as scripts take it: "" for none.
func tickArg(s *core.Schedule) string {
	head := s.Head()
	if !head.OK {
		return ""
	}
	return strconv.FormatInt(int64(head.Due), 10)
}

// parseChanges reads the script's reply to the given number of changes, behind its first word.
func parseChanges(r *record.Reply, given int) (ports.ChangeSchedulesReply, error) {
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
// server could fire it, and corrects the list of ticks if a schedule in it is not due.
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
	for i, o := range s.lookAtTicks(ctx, r.Shards, calls, r.Size()) {
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
// read or are not due, it corrects that and calls again.
func (s *Store) ticks(
	ctx context.Context,
	shard core.Shard,
	call *exchange.Call,
	o exchange.Outcome,
) (ticks ports.ShardTicks, err error) {
	for range mostSetAside {
		if o.Err != nil {
			return ticks, o.Err
		}
		if noRecord(&o) {
			return ticks, s.absent(ctx, shard)
		}

		found, err := listedTicks(o.Value)
		if err != nil || len(found.faults)+len(found.early) == 0 {
			return found.ticks, err
		}

		if len(found.faults) > 0 {
			err = s.setAllAside(ctx, call.Keys[0].(string), found.faults)
		}
		if err == nil {
			err = s.relist(ctx, shard, found.early)
		}
		if err != nil {
			return ticks, err
		}
		o = s.runApart(ctx, []exchange.Call{*call})[0]
	}
	return ticks, errTicksChange
}

// errTicksChange is the error of a look at ticks whose list can't be corrected, since another
// program damages it all the time.
var errTicksChange = fmt.Errorf("redis: the list of ticks was wrong each of %d times; "+
	"find the program that writes it", mostSetAside)

// tickList is what the ticks script has found.
type tickList struct {
	ticks ports.ShardTicks
	// faults are the listed schedules that can't be read, and early those that are not due.
	faults []*exchange.DamagedError
	early  []earlyTick
}

// earlyTick is a schedule that is listed as due and is not, with its record.
type earlyTick struct {
	schedule core.Schedule
	text     string
}

// listedTicks reads the reply of the ticks script.
func listedTicks(value any) (found tickList, err error) {
	r := record.ReplyOf(value)
	_ = r.Text()
	found.ticks = ports.ShardTicks{Now: core.Instant(r.Int()), Head: r.Head()}

	for r.More() {
		field := r.Text()
		text, _ := r.Optional()
		schedule, err := parseSchedule(field, text)
		switch {
		case err != nil:
			found.faults = append(found.faults, unreadable(field, text, err))
		case !schedule.Head().DueBy(found.ticks.Now):
			found.early = append(found.early, earlyTick{schedule, text})
		default:
			found.ticks.Due = append(found.ticks.Due, schedule)
		}
	}

	return found, r.Err()
}

// relist corrects when schedules are listed as due. An entry of the list is early if another
// program has written it.
func (s *Store) relist(ctx context.Context, shard core.Shard, early []earlyTick) error {
	for i := range early {
		e := &early[i]
		_, err := s.run(ctx, exchange.Call{
			Script: relistScheduleScript,
			Keys:   s.someKeys(shard, keyMeta, keySchedules, keyTicks),
			Args:   []any{storekit.ScheduleByID(e.schedule.ScheduleKey), e.text, tickArg(&e.schedule)},
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// unreadable returns the fault of a field's record that parseSchedule can't read.
func unreadable(field, text string, err error) *exchange.DamagedError {
	return &exchange.DamagedError{Place: record.PlaceSchedule, ID: field, Stored: text, Text: err.Error()}
}

// parseSchedule reads the record of a field.
func parseSchedule(field, text string) (core.Schedule, error) {
	id, name, _ := strings.Cut(field, "\x00")
	return storekit.DecodeSchedule(core.ScheduleKey{ID: id, Name: name}, text)
}
