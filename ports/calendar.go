package ports

import (
	"context"
	"fmt"

	"github.com/skeinq/skein/core"
)

// Limits of the calls of a [Calendar].
const (
	// MaxScheduleChanges is the maximum number of schedules that one call changes.
	MaxScheduleChanges = 100
	// MaxSchedulesPage is the default and the maximum number of schedules on a page, and of due
	// schedules that Ticks returns of a shard.
	MaxSchedulesPage = 100
	// AnyRevision is the revision of a removal that does not depend on what is stored.
	AnyRevision int64 = -1
)

// Calendar keeps the schedules of queues (docs/rules.md 10). A schedule is stored in the shard of
// its id. The store does not interpret it: package core computes each change, and the store applies
// it if the schedule still has the revision that the change was computed from. So a repeated or a
// late call changes nothing, and no lease is needed. The engine of a server reads the ticks of the
// shards that it holds and fires them, so that usually one process does so.
//
// Every method returns [ErrUnknownQueue] for a queue that was not declared, and [ErrInvalidRequest]
// for a request that its Validate refuses or a shard that the queue does not have. Schedules in
// replies belong to the caller, and their Data and Meta are read-only, as payloads are.
//
// A store that can't read the record of a schedule sets it aside in the [Quarantine], as it does
// with records of jobs. So it does with a record that core.Schedule.Validate refuses, for example
// after an edit by hand. Ticks does so with due records, and ChangeSchedules if it would refuse a
// change because of the record or removes a schedule of any revision. So does a finished
// [Operator].Recount with all records of its shard. Lists write nothing and leave such schedules
// out, but ScheduleNames counts them until they are set aside.
type Calendar interface {
	// ChangeSchedules creates, replaces and removes schedules of one shard, in order. Each change
	// is atomic, with the push of its entries, which merge as those of [Producer].Push with the
	// zero core.PushRule do. Changes whose revision is not the stored one are refused and do
	// nothing, and neither does a firing at a paused queue.
	//
	// The entries of one change merge in their order. The store may handle only the first of the
	// changes, so that its work is bounded: the reply has a result for each that it has handled. It
	// handles at least one. The caller sends the others again.
	//
	// If a push makes the shard's next job earlier, a [Notifier] sends the shard, as after a Push.
	//
	// Errors, with nothing changed: those of Validate; ErrUnknownQueue; ErrShardCountMismatch;
	// ErrFull. After an error of unknown outcome, each change may have been applied or not. To
	// repeat it is safe: if it was applied, the repeat is refused.
	ChangeSchedules(ctx context.Context, r ChangeSchedulesRequest) (ChangeSchedulesReply, error)

	// Ticks returns when the next schedule of each shard is due (core.Schedule.Head), and the
	// schedules that are due now. It writes nothing and needs no lease. A shard of a paused queue
	// has neither. Unreached shards are as in Heads.
	//
	// Errors: ErrInvalidRequest; ErrUnknownQueue; any other error only if no shard was reached.
	Ticks(ctx context.Context, r TicksRequest) (TicksReply, error)

	// Schedules pages through the schedules of a queue, in order of (Name, ID). A list is no
	// snapshot: see [Inspector].
	Schedules(ctx context.Context, r SchedulesRequest) (SchedulesPage, error)

	// ScheduleNames pages through the different names of the schedules of a queue, in order, with
	// the number of schedules of each. The cost of a page depends on its number of names, not on
	// the number of schedules.
	ScheduleNames(ctx context.Context, r ScheduleNamesRequest) (ScheduleNamesPage, error)
}

// ScheduleChange creates, replaces or removes one schedule.
type ScheduleChange struct {
	core.ScheduleKey
	// Revision is the revision of the schedule that is replaced or removed. 0 means that no such
	// schedule exists. AnyRevision removes a schedule of any revision, and is refused if none
	// exists.
	Revision int64
	// Schedule is stored. It has the same key, and a Revision above that of the change. nil removes
	// the schedule.
	Schedule *core.Schedule
	// Entries are pushed with the change. Their ID is that of the schedule, and there are at most
	// core.MaxFiringEntries. In a queue whose Merge has core.SamePush their payloads are those that
	// its Stored returns. They have no OnceIn.
	Entries []core.Entry
	// Busy is stored in place of Schedule, and no entry is pushed, if the id has a queued or a
	// claimed job. nil means that the id's job makes no difference.
	Busy *core.Schedule
}

// ChangeSchedulesRequest changes schedules of one shard.
type ChangeSchedulesRequest struct {
	Shard core.Shard
	// Shards and Generation are the layout of the queue as the caller knows it; see PushRequest.
	Shards     int
	Generation int64
	// Firing is true if the changes fire ticks. Then none is applied while the queue is paused.
	Firing bool
	// Changes are at most MaxScheduleChanges, each of another schedule. Their ids belong to the
	// shard.
	Changes []ScheduleChange
}

// Validate returns [ErrInvalidRequest] for too many changes, an id of another shard, two changes of
// one schedule, a Schedule or Busy of another key or without a higher Revision, too many entries or
// entries of another id, and a Revision below [AnyRevision] or AnyRevision with a Schedule. It
// returns the error of package core for an invalid schedule or entry.
func (r *ChangeSchedulesRequest) Validate() error {
	if len(r.Changes) > MaxScheduleChanges {
		return fmt.Errorf("%w: %d changes of schedules; send at most %d, and the others in another call",
			ErrInvalidRequest, len(r.Changes), MaxScheduleChanges)
	}

	seen := make(map[core.ScheduleKey]bool, len(r.Changes))
	for i := range r.Changes {
		c := &r.Changes[i]
		if err := c.validate(); err != nil {
			return fmt.Errorf("schedule %q of id %q: %w", c.Name, c.ID, err)
		}
		switch {
		case core.ShardOf(c.ID, r.Shards) != r.Shard.Index:
			return fmt.Errorf("%w: id %q does not belong to shard %v of %d", ErrInvalidRequest, c.ID, r.Shard, r.Shards)
		case seen[c.ScheduleKey]:
			return fmt.Errorf("%w: schedule %q of id %q is changed twice; send the second change in another call",
				ErrInvalidRequest, c.Name, c.ID)
		}
		seen[c.ScheduleKey] = true
	}
	return nil
}

func (c *ScheduleChange) validate() error {
	if err := c.ScheduleKey.Validate(); err != nil {
		return err
	}
	for _, s := range []*core.Schedule{c.Schedule, c.Busy} {
		if s == nil {
			continue
		}
		if err := s.Validate(); err != nil {
			return err
		}
		if s.ScheduleKey != c.ScheduleKey || s.Revision <= c.Revision {
			return fmt.Errorf("%w: it becomes schedule %q of id %q with revision %d, after %d; "+
				"keep its key and raise its revision",
				ErrInvalidRequest, s.Name, s.ID, s.Revision, c.Revision)
		}
	}

	switch {
	case c.Revision < AnyRevision || c.Revision == AnyRevision && c.Schedule != nil:
		return fmt.Errorf("%w: revision %d; give the revision of the schedule that was read",
			ErrInvalidRequest, c.Revision)
	case c.Schedule == nil && (c.Busy != nil || len(c.Entries) > 0):
		return fmt.Errorf("%w: a removal with entries; push them", ErrInvalidRequest)
	case len(c.Entries) > core.MaxFiringEntries:
		return fmt.Errorf("%w: %d entries; push at most %d with one change",
			ErrInvalidRequest, len(c.Entries), core.MaxFiringEntries)
	}
	for i := range c.Entries {
		if c.Entries[i].ID != c.ID {
			return fmt.Errorf("%w: entry %d is of id %q", ErrInvalidRequest, i, c.Entries[i].ID)
		}
		if err := c.Entries[i].Validate(); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if c.Entries[i].OnceIn != 0 {
			return fmt.Errorf("%w: entry %d has OnceIn; a tick is fired once anyway", ErrInvalidRequest, i)
		}
	}
	return nil
}

// ScheduleResult is what became of a change of a schedule.
type ScheduleResult uint8

const (
	// ScheduleChanged means that the change was applied.
	ScheduleChanged ScheduleResult = iota
	// ScheduleBusy means that the change's Busy was stored.
	ScheduleBusy
	// ScheduleRefused means that the stored schedule has another revision, or does not exist.
	ScheduleRefused
	// SchedulePaused means that the queue is paused, so the schedule was not fired.
	SchedulePaused
)

// ChangeSchedulesReply is the result of ChangeSchedules.
type ChangeSchedulesReply struct {
	// Now is the store's clock.
	Now core.Instant
	// Results are those of the first changes, in their order. If there are fewer than changes, the
	// caller sends the others again.
	Results []ScheduleResult
	// Met counts what the pushed entries met; see [PushReply].
	Met PushReply
	// Head is when the shard's next schedule is due, as in [ShardTicks].
	Head core.Head
}

// Check returns an error if a store can't have meant the reply for the request: no change was
// handled, or there are more results than changes. Callers check each reply before they read its
// Results, so that a store with a fault ends the call in place of a loop or a panic.
func (r *ChangeSchedulesReply) Check(request *ChangeSchedulesRequest) error {
	results, changes := len(r.Results), len(request.Changes)
	if results > changes || results == 0 && changes > 0 {
		return fmt.Errorf("the store returned %d results for %d changes of schedules of shard %v; "+
			"it has a fault, so run the conformance suite against it", results, changes, request.Shard)
	}
	return nil
}

// TicksRequest is a request for the ticks of shards.
type TicksRequest struct {
	Shards []core.Shard
	// Limit is the maximum number of due schedules to return of each shard. Values above
	// MaxSchedulesPage mean MaxSchedulesPage. 0 returns none.
	Limit int
}

// Size returns Limit with its maximum applied.
func (r *TicksRequest) Size() int { return max(0, min(r.Limit, MaxSchedulesPage)) }

// TicksReply is the result of Ticks.
type TicksReply struct {
	// Shards are in the order of the request.
	Shards []ShardTicks
	// Unreached are the requested shards that the store can't reach now, in the order of the
	// request. Their elements of Shards are zero and have no meaning.
	Unreached []core.Shard
}

// ShardTicks are the ticks of one shard.
type ShardTicks struct {
	// Now is the store's clock.
	Now core.Instant
	// Head is the earliest core.Schedule.Head of the shard. It is not OK while the queue is paused.
	Head core.Head
	// Due are the first schedules whose Head is due at Now, in order of (Head, ID, Name).
	Due []core.Schedule
}

// SchedulesRequest is a request for a page of schedules.
type SchedulesRequest struct {
	Queue string
	// Shards are the indexes of the shards to list, in any order. nil means all shards, an empty
	// list means no shard.
	Shards []int
	// ID and Name limit the list to schedules of that id and of that name. Empty means all.
	ID, Name string
	// After is the Next of the previous page. The zero value requests the first page.
	After core.ScheduleKey
	// Limit is the maximum number of schedules to return. A value below 1, or above
	// MaxSchedulesPage, means MaxSchedulesPage.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0, and for an ID, a Name or an After that
// no schedule can have.
func (r *SchedulesRequest) Validate() error {
	for _, text := range []string{r.ID, r.Name, r.After.ID, r.After.Name} {
		if err := validatePrefix(text); err != nil {
			return err
		}
	}
	return validateShards(r.Shards)
}

// Matches reports whether a schedule has the ID and the Name of the request.
func (r *SchedulesRequest) Matches(k core.ScheduleKey) bool {
	return (r.ID == "" || r.ID == k.ID) && (r.Name == "" || r.Name == k.Name)
}

// Size returns Limit with its default and maximum applied.
func (r *SchedulesRequest) Size() int { return schedulesPage(r.Limit) }

func schedulesPage(limit int) int {
	if limit <= 0 {
		return MaxSchedulesPage
	}
	return min(limit, MaxSchedulesPage)
}

// SchedulesPage is a page of schedules.
type SchedulesPage struct {
	// Now is the store's clock. It has no meaning if no shard was requested or reached.
	Now       core.Instant
	Schedules []core.Schedule
	// Next is the After of the next page. It is zero if no page follows.
	Next core.ScheduleKey
	// Unreached are the shards that can't be reached now, in order of index. Their schedules are
	// missing in the reply.
	Unreached []core.Shard
}

// ScheduleNamesRequest is a request for a page of names of schedules.
type ScheduleNamesRequest struct {
	Queue string
	// Shards are as in SchedulesRequest.
	Shards []int
	// After is the Next of the previous page. Empty requests the first page.
	After string
	// Limit is as in SchedulesRequest.
	Limit int
}

// Validate returns [ErrInvalidRequest] for a shard below 0 and for an After that no schedule can
// have.
func (r *ScheduleNamesRequest) Validate() error {
	if err := validatePrefix(r.After); err != nil {
		return err
	}
	return validateShards(r.Shards)
}

// Size returns Limit with its default and maximum applied.
func (r *ScheduleNamesRequest) Size() int { return schedulesPage(r.Limit) }

// ScheduleName is the schedules of one name.
type ScheduleName struct {
	Name string
	// Count is the number of its schedules.
	Count int64
	// First is the one with the smallest id that can be read. It is the zero value, with the
	// Revision 0, if none of the first MaxSchedulesPage can be.
	First core.Schedule
}

// ScheduleNamesPage is a page of names of schedules.
type ScheduleNamesPage struct {
	// Now is as in SchedulesPage.
	Now   core.Instant
	Names []ScheduleName
	// Next is the After of the next page. It is empty if no page follows.
	Next string
	// Unreached are as in SchedulesPage.
	Unreached []core.Shard
}
