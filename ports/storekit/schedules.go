package storekit

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// storedSchedule is a schedule as stores keep it: JSON, which people and scripts can read.
type storedSchedule struct {
	core.Schedule
	// Tick is when a server looks at the schedule next, or nil if never.
	Tick *core.Instant `json:"tick,omitempty"`
}

// EncodeSchedule returns a schedule as a text for [DecodeSchedule]. Its member "revision" is the
// Revision, and "tick" is the time of its Head, which is missing if the Head is not OK.
func EncodeSchedule(s *core.Schedule) (string, error) {
	stored := storedSchedule{Schedule: *s}
	if head := s.Head(); head.OK {
		stored.Tick = &head.Due
	}
	text, err := json.Marshal(stored)
	if err != nil {
		return "", fmt.Errorf("schedule %q of id %q: %w", s.Name, s.ID, err)
	}
	return string(text), nil
}

// Reasons why DecodeSchedule can't read a record.
var (
	errNoObject   = errors.New("it is no JSON object")
	errNotItsKey  = errors.New("it is not of its id and name")
	errNoRevision = errors.New("it has no revision")
	errNoBytes    = errors.New("its data or meta is no base64 text")
	errNotAllowed = errors.New("it breaks a rule of this version")
)

// DecodeSchedule returns the schedule of a key that [EncodeSchedule] wrote. Unknown members are
// ignored, and missing ones are zero, so that a program can read what another version has written.
//
// It returns an error if the text is not that, is the record of another key, or has a schedule that
// no store would take, since its Validate refuses it or no change can raise its Revision. The error
// is a reason for [UnreadableSchedule].
func DecodeSchedule(k core.ScheduleKey, text string) (core.Schedule, error) {
	var stored storedSchedule
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return core.Schedule{}, reasonOf(err)
	}

	s := &stored.Schedule
	switch {
	case s.ScheduleKey != k:
		return core.Schedule{}, errNotItsKey
	case s.Revision < 1 || s.Revision >= 1<<53:
		return core.Schedule{}, errNoRevision
	}
	if err := s.Validate(); err != nil {
		return core.Schedule{}, fmt.Errorf("%w: %w", errNotAllowed, err)
	}
	return *s, nil
}

// reasonOf returns why a record can't be decoded, given the error of package json.
func reasonOf(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && wrong.Field != "" {
		member := wrong.Field[strings.LastIndexByte(wrong.Field, '.')+1:]
		return fmt.Errorf("its member %s is a %s, which is the wrong type", member, wrong.Value)
	}
	if _, ok := errors.AsType[base64.CorruptInputError](err); ok {
		return errNoBytes
	}
	return errNoObject
}

// UnreadableSchedule returns the Reason of a schedule of a name that was set aside because of an
// error of [DecodeSchedule].
func UnreadableSchedule(name string, err error) string {
	return fmt.Sprintf("schedule %s: %v; create the schedule again, and discard this record", name, err)
}

// RepeatRefused repeats the changes that the reply to r has refused, and puts their results in the
// reply. change makes them. If it fails, the reply stays as it is. A store calls it after it has
// set records of refused changes aside.
func RepeatRefused(
	r *ports.ChangeSchedulesRequest,
	reply *ports.ChangeSchedulesReply,
	change func(*ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error),
) {
	again := *r
	again.Changes = nil
	var places []int
	for i, result := range reply.Results {
		if result == ports.ScheduleRefused {
			again.Changes, places = append(again.Changes, r.Changes[i]), append(places, i)
		}
	}
	next, err := change(&again)
	if err != nil {
		return
	}

	for i, result := range next.Results {
		reply.Results[places[i]] = result
	}
	reply.Now, reply.Head = next.Now, next.Head
	reply.Met.Add(next.Met)
}

// keySeparator is between the parts of a schedule's key. Neither names nor ids have it, and it is
// smaller than any of their bytes, so joined keys sort as their parts do.
const keySeparator = "\x00"

// ScheduleByName returns a key as a text that sorts by (Name, ID). [ScheduleOfName] is its inverse.
func ScheduleByName(k core.ScheduleKey) string { return k.Name + keySeparator + k.ID }

// ScheduleByID returns a key as a text that sorts by (ID, Name).
func ScheduleByID(k core.ScheduleKey) string { return k.ID + keySeparator + k.Name }

// ScheduleOfName returns the key that [ScheduleByName] wrote.
func ScheduleOfName(text string) core.ScheduleKey {
	name, id, _ := strings.Cut(text, keySeparator)
	return core.ScheduleKey{ID: id, Name: name}
}

// NewSchedulePager returns a [Pager] for the page that r requests. The place of a schedule is the
// ID of a cursor: the text of [ScheduleByName]. Add only schedules that r matches.
func NewSchedulePager(r *ports.SchedulesRequest) *Pager[core.Schedule] {
	return NewPager[core.Schedule](SchedulePageRequest(r), true)
}

// SchedulePageRequest returns the request of [NewSchedulePager], for a [Pager] of other values.
func SchedulePageRequest(r *ports.SchedulesRequest) ports.PageRequest {
	page := ports.PageRequest{Limit: r.Size()}
	if r.After != (core.ScheduleKey{}) {
		page.After.ID = ScheduleByName(r.After)
	}
	if r.Name != "" {
		page.Prefix = r.Name + keySeparator
	}
	return page
}

// SchedulesPageOf returns the page of a pager.
func SchedulesPageOf(p *Pager[core.Schedule]) (schedules []core.Schedule, next core.ScheduleKey) {
	schedules, cursor := p.Page()
	return schedules, ScheduleOfName(cursor.ID)
}

// NextReadable returns the first schedule of a name on the first page of the list of the shards of
// r, or the zero value if none of the page can be read. A store calls it for the First of a name
// whose record it can't read.
func NextReadable(
	ctx context.Context,
	c ports.Calendar,
	r *ports.ScheduleNamesRequest,
	name string,
) (core.Schedule, error) {
	page, err := c.Schedules(ctx, ports.SchedulesRequest{Queue: r.Queue, Shards: r.Shards, Name: name})
	if err != nil || len(page.Schedules) == 0 {
		return core.Schedule{}, err
	}
	return page.Schedules[0], nil
}

// ScheduleNameSums merges the names of shards into one page. The zero value is ready. It is for one
// goroutine.
type ScheduleNameSums struct{ byName map[string]ports.ScheduleName }

// Add adds a name of a shard.
func (s *ScheduleNameSums) Add(n ports.ScheduleName) {
	if s.byName == nil {
		s.byName = make(map[string]ports.ScheduleName)
	}
	if sum, ok := s.byName[n.Name]; ok {
		n.Count += sum.Count
		if sum.First.ID < n.First.ID {
			n.First = sum.First
		}
	}
	s.byName[n.Name] = n
}

// Page returns the first of the added names, at most the given number, and the Next of the page.
// Each shard must have added its first names, one more than that number if it has them.
func (s *ScheduleNameSums) Page(size int) (names []ports.ScheduleName, next string) {
	for _, n := range s.byName {
		names = append(names, n)
	}
	slices.SortFunc(names, func(a, b ports.ScheduleName) int { return cmp.Compare(a.Name, b.Name) })
	if len(names) > size {
		names = names[:size]
		next = names[size-1].Name
	}
	return names, next
}
