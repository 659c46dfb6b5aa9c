package broken

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func brokenCalendars() []brokenStore {
	return []brokenStore{
		{"fires again when a firing is repeated", "fire/does nothing when it is repeated", wrapped(firesOnRepeat)},
		{"moves to the next tick without a push", "fire/pushes and moves to the next tick", wrapped(movesWithoutPush)},
		{
			"pushes without moving to the next tick",
			"fire/pushes and moves to the next tick",
			wrapped(pushesWithoutMove),
		},
		{
			"replaces a schedule of any revision",
			"schedule/replaces the revision that it names",
			wrapped(ignoresRevisions),
		},
		{
			"fires a schedule that was changed",
			"fire/does nothing after a change or a removal",
			wrapped(ignoresRevisions),
		},
		{"creates a schedule over another", "schedule/creates what does not exist", wrapped(ignoresRevisions)},
		{
			"forgets a tick that a change has moved",
			"schedule/replaces the revision that it names",
			wrapped(forgetsMovedTicks),
		},
		{
			"has ticks while the queue is paused",
			"fire/does nothing while the queue is paused",
			wrapped(ticksWhilePaused),
		},
		{"fires while the queue is paused", "fire/does nothing while the queue is paused", wrapped(firesWhilePaused)},
		{
			"changes nothing while the queue is paused",
			"schedule/works while the queue is paused",
			wrapped(changesAsFirings),
		},
		{"pushes for a busy id", "fire/pushes nothing while its id is busy", wrapped(ignoresBusy)},
		{"takes no claimed id for busy", "fire/pushes nothing while its id is busy", wrapped(ignoresBusyClaims)},
		{"looks at busy ids before all changes", "fire/sees the push of an earlier change", wrapped(looksAtBusyFirst)},
		{
			"applies no change beside one that it refuses",
			"schedule/applies each change by itself",
			wrapped(appliesAllOrNone),
		},
		{"loses all entries but the first", "fire/pushes all entries of several schedules", wrapped(pushesOneEntry)},
		{"forgets the tags of a schedule", "schedule/stores every field", wrapped(forgetsTagsOfSchedules)},
		{"shares its schedules with callers", "schedule/keeps nothing that it returns", wrapped(sharesSchedules)},
		{"counts no entries that ticks push", "fire/reports what its entries met", wrapped(countsNoEntries)},
		{
			"returns more due schedules than requested",
			"fire/returns as many due schedules as requested",
			wrapped(returnsAllDue),
		},
		{"lists schedules of an id by prefix", "schedules/are listed of an id or a name", wrapped(listsByPrefix)},
		{"counts the names of each shard", "schedules/are counted by name", wrapped(countsLastShard)},
		{"lists a name without schedules", "schedules/are counted until the last is removed", wrapped(keepsEmptyNames)},
		{"counts a removal of no schedule", "schedules/are counted though a removal finds none", wrapped(countsNoRemoval)},
		{"forgets a queue with schedules", "schedule/keeps its queue from being forgotten", wrapped(forgetsSchedules)},
	}
}

// beforeChange changes the request of a change of schedules.
func beforeChange(s full, change func(ctx context.Context, r *ports.ChangeSchedulesRequest)) full {
	return replace(s, "ChangeSchedules",
		func(ctx context.Context, r ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
			r.Changes = slices.Clone(r.Changes)
			change(ctx, &r)
			return s.ChangeSchedules(ctx, r)
		})
}

// storedRevision returns the revision of a schedule in the store.
func storedRevision(ctx context.Context, s full, at core.Shard, k core.ScheduleKey) int64 {
	page, err := s.Schedules(ctx, ports.SchedulesRequest{Queue: at.Queue, ID: k.ID, Name: k.Name})
	if err != nil || len(page.Schedules) == 0 {
		return 0
	}
	return page.Schedules[0].Revision
}

// firesOnRepeat pushes the entries of a firing also if the schedule has moved on.
func firesOnRepeat(s full) full {
	return beforeChange(s, func(ctx context.Context, r *ports.ChangeSchedulesRequest) {
		for _, c := range r.Changes {
			if storedRevision(ctx, s, r.Shard, c.ScheduleKey) != c.Revision {
				_, _ = s.Push(ctx, ports.PushRequest{
					Queue: r.Shard.Queue, Shards: r.Shards, Generation: r.Generation, Entries: c.Entries,
				})
			}
		}
	})
}

func movesWithoutPush(s full) full {
	return beforeChange(s, func(_ context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			r.Changes[i].Entries = nil
		}
	})
}

func pushesWithoutMove(s full) full {
	return beforeChange(s, func(ctx context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			c := &r.Changes[i]
			if page, err := s.Schedules(ctx, ports.SchedulesRequest{
				Queue: r.Shard.Queue,
				ID:    c.ID,
				Name:  c.Name,
			}); err == nil && r.Firing {
				next := *c.Schedule
				next.Next = page.Schedules[0].Next
				c.Schedule = &next
			}
		}
	})
}

func ignoresRevisions(s full) full {
	return beforeChange(s, func(ctx context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			c := &r.Changes[i]
			c.Revision = storedRevision(ctx, s, r.Shard, c.ScheduleKey)
			if c.Schedule != nil {
				next := *c.Schedule
				next.Revision = max(next.Revision, c.Revision+1)
				c.Schedule = &next
			}
		}
	})
}

// forgetsMovedTicks never looks at a schedule that has replaced another one.
func forgetsMovedTicks(s full) full {
	moved := map[core.ScheduleKey]bool{}
	changed := beforeChange(s, func(_ context.Context, r *ports.ChangeSchedulesRequest) {
		for _, c := range r.Changes {
			moved[c.ScheduleKey] = c.Revision > 0
		}
	})

	return replace(changed, "Ticks", func(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
		reply, err := s.Ticks(ctx, r)
		for i := range reply.Shards {
			page, _ := s.Schedules(ctx, ports.SchedulesRequest{
				Queue:  r.Shards[i].Queue,
				Shards: []int{r.Shards[i].Index},
			})

			reply.Shards[i].Head = core.Head{}
			for _, schedule := range page.Schedules {
				if !moved[schedule.ScheduleKey] {
					reply.Shards[i].Head = reply.Shards[i].Head.Earlier(schedule.Head())
				}
			}
		}
		return reply, err
	})
}

func ticksWhilePaused(s full) full {
	return replace(s, "Ticks", func(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
		reply, err := s.Ticks(ctx, r)
		for i := range reply.Shards {
			page, _ := s.Schedules(ctx, ports.SchedulesRequest{
				Queue:  r.Shards[i].Queue,
				Shards: []int{r.Shards[i].Index},
			})
			for _, schedule := range page.Schedules {
				reply.Shards[i].Head = reply.Shards[i].Head.Earlier(schedule.Head())
			}
		}
		return reply, err
	})
}

func firesWhilePaused(s full) full {
	return beforeChange(s, func(_ context.Context, r *ports.ChangeSchedulesRequest) { r.Firing = false })
}

func changesAsFirings(s full) full {
	return beforeChange(s, func(_ context.Context, r *ports.ChangeSchedulesRequest) { r.Firing = true })
}

func ignoresBusy(s full) full {
	return beforeChange(s, func(_ context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			r.Changes[i].Busy = nil
		}
	})
}

func ignoresBusyClaims(s full) full {
	return beforeChange(s, func(ctx context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			c := &r.Changes[i]
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: c.ID})
			if err == nil && found.Queued == nil {
				c.Busy = nil
			}
		}
	})
}

// looksAtBusyFirst decides for all changes which ids are busy before it makes the first.
func looksAtBusyFirst(s full) full {
	return beforeChange(s, func(ctx context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			c := &r.Changes[i]
			found, err := s.Find(ctx, ports.FindRequest{Queue: r.Shard.Queue, ID: c.ID})
			if err == nil && found.Queued == nil && found.Claim == nil {
				c.Busy = nil
			}
		}
	})
}

func appliesAllOrNone(s full) full {
	return replace(s, "ChangeSchedules",
		func(ctx context.Context, r ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
			for _, c := range r.Changes {
				if c.Revision != ports.AnyRevision && storedRevision(ctx, s, r.Shard, c.ScheduleKey) != c.Revision {
					reply, err := s.ChangeSchedules(ctx, ports.ChangeSchedulesRequest{
						Shard:      r.Shard,
						Shards:     r.Shards,
						Generation: r.Generation,
					})
					reply.Results = slices.Repeat([]ports.ScheduleResult{ports.ScheduleRefused}, len(r.Changes))
					return reply, err
				}
			}

			return s.ChangeSchedules(ctx, r)
		})
}

func pushesOneEntry(s full) full {
	return beforeChange(s, func(_ context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			r.Changes[i].Entries = r.Changes[i].Entries[:min(1, len(r.Changes[i].Entries))]
		}
	})
}

func forgetsTagsOfSchedules(s full) full {
	return beforeChange(s, func(_ context.Context, r *ports.ChangeSchedulesRequest) {
		for i := range r.Changes {
			if c := &r.Changes[i]; c.Schedule != nil {
				next := *c.Schedule
				next.Tags = ""
				c.Schedule = &next
			}
		}
	})
}

// sharesSchedules returns the same schedules again until they change, as a store does that does not
// copy them.
func sharesSchedules(s full) full {
	var mu sync.Mutex
	shared := map[core.ScheduleKey]core.Schedule{}
	return replace(s, "Schedules", func(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
		page, err := s.Schedules(ctx, r)
		mu.Lock()
		defer mu.Unlock()
		for i, schedule := range page.Schedules {
			if known, ok := shared[schedule.ScheduleKey]; ok && known.Revision == schedule.Revision {
				page.Schedules[i] = known
			} else {
				shared[schedule.ScheduleKey] = schedule
			}
		}
		return page, err
	})
}

func countsNoEntries(s full) full {
	return replace(s, "ChangeSchedules",
		func(ctx context.Context, r ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
			reply, err := s.ChangeSchedules(ctx, r)
			reply.Met = ports.PushReply{Now: reply.Met.Now}
			return reply, err
		})
}

func returnsAllDue(s full) full {
	return replace(s, "Ticks", func(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
		r.Limit = ports.MaxSchedulesPage
		return s.Ticks(ctx, r)
	})
}

func listsByPrefix(s full) full {
	return replace(s, "Schedules", func(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
		if len(r.Name) == 1 {
			r.Name = ""
		}
		return s.Schedules(ctx, r)
	})
}

// countsLastShard counts only the schedules of the last shard that has a name.
func countsLastShard(s full) full {
	return replace(s, "ScheduleNames",
		func(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
			page, err := s.ScheduleNames(ctx, r)
			for i := range page.Names {
				for _, q := range must(s.Queues(ctx)) {
					for shard := range q.Shards {
						if one, err := s.ScheduleNames(ctx, ports.ScheduleNamesRequest{
							Queue:  r.Queue,
							Shards: []int{shard},
						}); err == nil {
							for _, n := range one.Names {
								if n.Name == page.Names[i].Name {
									page.Names[i].Count = n.Count
								}
							}
						}
					}
				}
			}
			return page, err
		})
}

// keepsEmptyNames lists a name also after its last schedule was removed, with the count 0.
func keepsEmptyNames(s full) full {
	known := map[string]ports.ScheduleName{}
	return replace(s, "ScheduleNames",
		func(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
			page, err := s.ScheduleNames(ctx, r)
			for _, n := range page.Names {
				known[r.Queue+n.Name] = ports.ScheduleName{Name: n.Name, First: n.First}
			}
			for at, n := range known {
				listed := slices.ContainsFunc(page.Names, func(o ports.ScheduleName) bool { return o.Name == n.Name })
				if at == r.Queue+n.Name && !listed && err == nil && r.After == "" && page.Next == "" {
					page.Names = append(page.Names, n)
				}
			}
			slices.SortFunc(page.Names, func(a, b ports.ScheduleName) int { return cmp.Compare(a.Name, b.Name) })
			return page, err
		})
}

// countsNoRemoval counts a schedule less after a removal that has found none of its name and id.
func countsNoRemoval(s full) full {
	var mu sync.Mutex
	less := map[string]int64{}
	watched := replace(s, "ChangeSchedules",
		func(ctx context.Context, r ports.ChangeSchedulesRequest) (ports.ChangeSchedulesReply, error) {
			reply, err := s.ChangeSchedules(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			for at, result := range reply.Results {
				if c := &r.Changes[at]; c.Schedule == nil && c.Revision == 0 && result == ports.ScheduleChanged {
					less[r.Shard.Queue+"/"+c.Name]++
				}
			}
			return reply, err
		})

	return replace(watched, "ScheduleNames",
		func(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
			page, err := s.ScheduleNames(ctx, r)
			mu.Lock()
			defer mu.Unlock()
			for at := range page.Names {
				page.Names[at].Count -= less[r.Queue+"/"+page.Names[at].Name]
			}
			return page, err
		})
}

func must[T any](value T, _ error) T { return value }

func forgetsSchedules(s full) full {
	return replaceErr(s, "Forget", func(ctx context.Context, queue string) error {
		page, err := s.Schedules(ctx, ports.SchedulesRequest{Queue: queue})
		for _, schedule := range page.Schedules {
			for _, q := range must(s.Queues(ctx)) {
				if q.Name == queue && err == nil {
					_, err = s.ChangeSchedules(ctx, ports.ChangeSchedulesRequest{
						Shard:  core.Shard{Queue: queue, Index: core.ShardOf(schedule.ID, q.Shards)},
						Shards: q.Shards, Generation: q.Generation,
						Changes: []ports.ScheduleChange{
							{ScheduleKey: schedule.ScheduleKey, Revision: schedule.Revision},
						},
					})
				}
			}
		}
		return s.Forget(ctx, queue)
	})
}
