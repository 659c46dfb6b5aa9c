package model

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// ChangeSchedules implements ports.Calendar.
func (m *Store) ChangeSchedules(
	ctx context.Context,
	r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if err := r.Validate(); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	q, s, err := m.shard(ctx, r.Shard)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	if err := q.agrees(r.Shards, r.Generation); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	reply := ports.ChangeSchedulesReply{Now: m.Now(), Met: ports.PushReply{Now: m.Now()}}
	for _, c := range r.Changes {
		result := ports.SchedulePaused
		if !r.Firing || !q.record.Paused {
			result = s.changeSchedule(&c, &reply.Met)
		}
		reply.Results = append(reply.Results, result)
	}
	reply.Head = s.ticks(q.record.Paused, reply.Now, 0).Head
	return reply, nil
}

// changeSchedule applies a change if the stored schedule has its revision.
func (s *shard) changeSchedule(c *ports.ScheduleChange, met *ports.PushReply) ports.ScheduleResult {
	stored, exists := s.schedules[c.ScheduleKey]
	if c.Revision != stored.Revision && !(c.Revision == ports.AnyRevision && exists) {
		return ports.ScheduleRefused
	}
	_, queued := s.queued[c.ID]
	_, claimed := s.claimed[c.ID]

	switch {
	case c.Schedule == nil:
		delete(s.schedules, c.ScheduleKey)
	case c.Busy != nil && (queued || claimed):
		s.schedules[c.ScheduleKey] = *c.Busy
		return ports.ScheduleBusy
	default:
		s.schedules[c.ScheduleKey] = *c.Schedule
		for i := range c.Entries {
			s.push(c.Entries[i:i+1], core.PushRule{}, met)
		}
	}
	return ports.ScheduleChanged
}

// Ticks implements ports.Calendar.
func (m *Store) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	reply := ports.TicksReply{Shards: []ports.ShardTicks{}}
	for _, at := range r.Shards {
		q, s, err := m.shard(ctx, at)
		if err != nil {
			return ports.TicksReply{}, err
		}
		reply.Shards = append(reply.Shards, s.ticks(q.record.Paused, m.Now(), r.Size()))
	}
	return reply, nil
}

// ticks returns the shard's next tick and its first due schedules.
func (s *shard) ticks(paused bool, now core.Instant, most int) ports.ShardTicks {
	t := ports.ShardTicks{Now: now}
	if paused {
		return t
	}

	for _, schedule := range slices.SortedFunc(maps.Values(s.schedules), func(a, b core.Schedule) int {
		return cmp.Or(cmp.Compare(a.Head().Due, b.Head().Due), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Name, b.Name))
	}) {
		head := schedule.Head()
		t.Head = t.Head.Earlier(head)
		if head.DueBy(now) && len(t.Due) < most {
			t.Due = append(t.Due, copied(schedule))
		}
	}

	return t
}

// copied returns a schedule for a reply, which belongs to the caller.
func copied(s core.Schedule) core.Schedule {
	s.Earlier, s.Recent = slices.Clone(s.Earlier), slices.Clone(s.Recent)
	if s.Backfill != nil {
		backfill := *s.Backfill
		s.Backfill = &backfill
	}
	return s
}

// schedules returns the schedules of shards, in order of (Name, ID).
func schedules(shards []*shard) []core.Schedule {
	var all []core.Schedule
	for _, s := range shards {
		for _, schedule := range s.schedules {
			all = append(all, copied(schedule))
		}
	}
	slices.SortFunc(all, func(a, b core.Schedule) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// Schedules implements ports.Calendar.
func (m *Store) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	_, shards, err := m.listed(ctx, &ports.PageRequest{Queue: r.Queue, Shards: r.Shards}, r.Validate())
	if err != nil {
		return ports.SchedulesPage{}, err
	}

	page := ports.SchedulesPage{Now: m.Now()}
	for _, s := range schedules(shards) {
		after := cmp.Or(cmp.Compare(s.Name, r.After.Name), cmp.Compare(s.ID, r.After.ID)) > 0
		switch {
		case !after || !r.Matches(s.ScheduleKey):
		case len(page.Schedules) == r.Size():
			page.Next = page.Schedules[len(page.Schedules)-1].ScheduleKey
			return page, nil
		default:
			page.Schedules = append(page.Schedules, s)
		}
	}
	return page, nil
}

// ScheduleNames implements ports.Calendar.
func (m *Store) ScheduleNames(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()

	_, shards, err := m.listed(ctx, &ports.PageRequest{Queue: r.Queue, Shards: r.Shards}, r.Validate())
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}

	page := ports.ScheduleNamesPage{Now: m.Now()}
	for _, s := range schedules(shards) {
		switch last := len(page.Names) - 1; {
		case s.Name <= r.After:
		case last >= 0 && page.Names[last].Name == s.Name:
			page.Names[last].Count++
		case len(page.Names) == r.Size():
			page.Next = page.Names[last].Name
			return page, nil
		default:
			page.Names = append(page.Names, ports.ScheduleName{Name: s.Name, Count: 1, First: s})
		}
	}
	return page, nil
}
