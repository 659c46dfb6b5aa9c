package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// calendar has the schedules of a shard. Its schedules never change: a change replaces one.
type calendar struct {
	byKey map[core.ScheduleKey]*core.Schedule
	// byTick has those with a Head, by its time.
	byTick, byID, byName sorted[*core.Schedule]
	// count has the number of schedules of each name.
	count map[string]int64
}

func scheduleByTick(s *core.Schedule) place {
	return place{int64(s.Head().Due), storekit.ScheduleByID(s.ScheduleKey)}
}
func scheduleByID(s *core.Schedule) place { return place{0, storekit.ScheduleByID(s.ScheduleKey)} }
func scheduleByName(s *core.Schedule) place {
	return place{0, storekit.ScheduleByName(s.ScheduleKey)}
}

// put stores a schedule in place of the one with its key.
func (c *calendar) put(s *core.Schedule) {
	c.remove(s.ScheduleKey)
	if c.byKey == nil {
		c.byKey, c.count = make(map[core.ScheduleKey]*core.Schedule), make(map[string]int64)
	}
	c.byKey[s.ScheduleKey] = s
	c.count[s.Name]++
	c.byID.Insert(scheduleByID(s), s)
	c.byName.Insert(scheduleByName(s), s)
	if s.Head().OK {
		c.byTick.Insert(scheduleByTick(s), s)
	}
}

// remove removes the schedule of a key, if there is one.
func (c *calendar) remove(key core.ScheduleKey) {
	s := c.byKey[key]
	if s == nil {
		return
	}
	delete(c.byKey, key)
	if c.count[key.Name]--; c.count[key.Name] == 0 {
		delete(c.count, key.Name)
	}
	c.byID.Delete(scheduleByID(s))
	c.byName.Delete(scheduleByName(s))
	if s.Head().OK {
		c.byTick.Delete(scheduleByTick(s))
	}
}

// head returns when the next schedule is due.
func (c *calendar) head() core.Head {
	if s, ok := c.byTick.First(); ok {
		return s.Head()
	}
	return core.Head{}
}

// due returns the first schedules that are due.
func (c *calendar) due(now core.Instant, limit int) (list []core.Schedule) {
	for it := range c.byTick.Scan(storekit.Start{}, false) {
		if it.Key > int64(now) || len(list) >= limit {
			break
		}
		list = append(list, cloneSchedule(it.value))
	}
	return list
}

// cloneSchedule returns a schedule that shares nothing with s but its bytes.
func cloneSchedule(s *core.Schedule) core.Schedule {
	c := *s
	c.Earlier, c.Recent = slices.Clone(s.Earlier), slices.Clone(s.Recent)
	if s.Backfill != nil {
		backfill := *s.Backfill
		c.Backfill = &backfill
	}
	return c
}

// ChangeSchedules implements [ports.Calendar].
func (s *Store) ChangeSchedules(
	ctx context.Context,
	r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	if err := r.Validate(); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	q, err := s.b.queue(ctx, r.Shard.Queue)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	q.forgetMu.RLock()
	defer q.forgetMu.RUnlock()
	if err := q.checkLayout(r.Shards, r.Generation); err != nil {
		return ports.ChangeSchedulesReply{}, err
	}
	sh, err := q.shard(r.Shard.Index)
	if err != nil {
		return ports.ChangeSchedulesReply{}, err
	}

	sh.mu.Lock()
	defer sh.mu.Unlock()
	before, paused := sh.head(), q.paused.Load()
	reply := ports.ChangeSchedulesReply{Now: s.b.now()}
	reply.Met.Now = reply.Now

	for i := range r.Changes {
		result := ports.SchedulePaused
		if !paused || !r.Firing {
			result = sh.changeSchedule(&r.Changes[i], &reply.Met)
		}
		reply.Results = append(reply.Results, result)
	}

	sh.wakeIfEarlier(before)
	if !paused {
		reply.Head = sh.calendar.head()
	}
	return reply, nil
}

// changeSchedule applies one change, and counts in met what its entries meet.
func (s *shard) changeSchedule(c *ports.ScheduleChange, met *ports.PushReply) ports.ScheduleResult {
	var revision int64
	if stored := s.calendar.byKey[c.ScheduleKey]; stored != nil {
		revision = stored.Revision
	}
	if c.Revision != revision && (c.Revision != ports.AnyRevision || revision == 0) {
		return ports.ScheduleRefused
	}

	switch {
	case c.Schedule == nil:
		s.calendar.remove(c.ScheduleKey)
		return ports.ScheduleChanged
	case c.Busy != nil && s.ids[c.ID] != nil:
		busy := cloneSchedule(c.Busy)
		s.calendar.put(&busy)
		return ports.ScheduleBusy
	}

	next := cloneSchedule(c.Schedule)
	s.calendar.put(&next)
	for i := range c.Entries {
		s.push(&c.Entries[i], &ports.PushRequest{}, met)
	}
	return ports.ScheduleChanged
}

// Ticks implements [ports.Calendar].
func (s *Store) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	reply := ports.TicksReply{Shards: make([]ports.ShardTicks, len(r.Shards))}
	for i, id := range r.Shards {
		sh, err := s.b.shard(ctx, id)
		if err != nil {
			return ports.TicksReply{}, err
		}

		sh.mu.Lock()
		ticks := ports.ShardTicks{Now: s.b.now()}
		if !sh.queue.paused.Load() {
			ticks.Head, ticks.Due = sh.calendar.head(), sh.calendar.due(ticks.Now, r.Size())
		}
		sh.mu.Unlock()
		reply.Shards[i] = ticks
	}
	return reply, nil
}

// Schedules implements [ports.Calendar].
func (s *Store) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	q, shards, err := s.b.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.SchedulesPage{}, err
	}

	p := storekit.NewSchedulePager(&r)
	for _, shard := range shards {
		sh := q.shards[shard.Index]
		sh.mu.Lock()
		if r.ID == "" {
			gather(p, &sh.calendar.byName, cloneSchedule)
		} else {
			sh.calendar.gatherSchedules(p, &r)
		}
		sh.mu.Unlock()
	}

	page := ports.SchedulesPage{Now: s.b.now()}
	page.Schedules, page.Next = storekit.SchedulesPageOf(p)
	return page, nil
}

// gatherSchedules adds the schedules of the requested id.
func (c *calendar) gatherSchedules(p *storekit.Pager[core.Schedule], r *ports.SchedulesRequest) {
	first := storekit.ScheduleByID(core.ScheduleKey{ID: r.ID})
	start := storekit.Start{Behind: true, At: ports.Cursor{ID: first}, Inclusive: true}
	for it := range c.byID.Scan(start, false) {
		if it.value.ID != r.ID {
			return
		}
		if r.Matches(it.value.ScheduleKey) {
			p.Add(ports.Cursor(scheduleByName(it.value)), cloneSchedule(it.value))
		}
	}
}

// ScheduleNames implements [ports.Calendar].
func (s *Store) ScheduleNames(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
	q, shards, err := s.b.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ScheduleNamesPage{}, err
	}

	var sums storekit.ScheduleNameSums
	for _, shard := range shards {
		sh := q.shards[shard.Index]
		sh.mu.Lock()
		for _, name := range sh.calendar.names(r.After, r.Size()+1) {
			sums.Add(name)
		}
		sh.mu.Unlock()
	}

	page := ports.ScheduleNamesPage{Now: s.b.now()}
	page.Names, page.Next = sums.Page(r.Size())
	return page, nil
}

// names returns the first names behind one.
func (c *calendar) names(after string, most int) (names []ports.ScheduleName) {
	for _, name := range slices.Sorted(maps.Keys(c.count)) {
		if name <= after {
			continue
		}
		if len(names) == most {
			break
		}

		start := ports.Cursor{ID: storekit.ScheduleByName(core.ScheduleKey{Name: name})}
		for it := range c.byName.Scan(storekit.Start{Behind: true, At: start, Inclusive: true}, false) {
			names = append(names, ports.ScheduleName{Name: name, Count: c.count[name], First: cloneSchedule(it.value)})
			break
		}
	}
	return names
}
