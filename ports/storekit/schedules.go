package storekit

import (
	"cmp"
	"encoding/json"
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

// DecodeSchedule returns the schedule that [EncodeSchedule] wrote. Unknown members are ignored, and
// missing ones are zero, so that a program can read what another version has written.
func DecodeSchedule(text string) (core.Schedule, error) {
	var stored storedSchedule
	if err := json.Unmarshal([]byte(text), &stored); err != nil {
		return core.Schedule{}, err
	}
	return stored.Schedule, nil
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
