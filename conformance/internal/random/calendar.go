package random

import (
	"context"
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// changeSchedules creates, edits, fires and removes schedules of a shard.
func (d *driver) changeSchedules() {
	q := d.queue()
	at := core.Shard{Queue: q.Name, Index: rapid.IntRange(0, q.Shards-1).Draw(d.t, "shard")}

	r := ports.ChangeSchedulesRequest{
		Shard:      at,
		Shards:     q.Shards,
		Generation: q.Generation,
		Firing:     rapid.Bool().Draw(d.t, "firing"),
	}
	if rarely(d, "another layout") {
		r.Generation++
	}

	seen := map[core.ScheduleKey]bool{}
	for range pick(d, "changes", 1, 1, 2, 3) {
		k := core.ScheduleKey{ID: pick(d, "id", randomIDs()...), Name: pick(d, "name", "a", "a-b", "b")}
		if !seen[k] && core.ShardOf(k.ID, q.Shards) == at.Index {
			seen[k] = true
			r.Changes = append(r.Changes, d.scheduleChange(at, k))
		}
	}

	compare(d, "ChangeSchedules", r, changeAll)
}

var errNoProgress = errors.New("no change was handled")

// changeAll makes all changes of a request, which a store may handle in several calls.
func changeAll(
	s ports.ShardStore,
	ctx context.Context,
	r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	sum, err := s.ChangeSchedules(ctx, r)
	for err == nil && len(sum.Results) < len(r.Changes) {
		remaining := r
		remaining.Changes = r.Changes[len(sum.Results):]

		var reply ports.ChangeSchedulesReply
		if reply, err = s.ChangeSchedules(ctx, remaining); err != nil {
			break
		}
		if len(reply.Results) == 0 {
			return sum, errNoProgress
		}

		reply.Results = append(sum.Results, reply.Results...)
		sum.Met.Add(reply.Met)
		reply.Met = sum.Met
		sum = reply
	}
	return sum, err
}

// scheduleChange draws a change of a schedule: of the one that the model has, or of a revision that
// it does not have.
func (d *driver) scheduleChange(at core.Shard, k core.ScheduleKey) ports.ScheduleChange {
	stored := d.model().Schedule(at, k)
	c := ports.ScheduleChange{ScheduleKey: k, Revision: stored.Revision}

	if rarely(d, "another revision") {
		c.Revision = pick(d, "revision", 0, 1, stored.Revision+1)
	}

	if rarely(d, "remove") {
		c.Revision = pick(d, "revision", c.Revision, ports.AnyRevision)
		return c
	}

	next := core.Schedule{
		ScheduleKey: k,
		Recurrence: core.Recurrence{
			Spec: "every 1m0s 0",
			Data: d.data("data"),
			Skip: rapid.Bool().Draw(d.t, "skip"),
		},
		Next:     d.model().Now().Add(pick(d, "next", -time.Minute, 0, time.Second, time.Minute, core.Forever)),
		Paused:   rarely(d, "paused"),
		Revision: c.Revision + 1,
	}

	next.Fired = stored.Fired
	c.Schedule = &next
	for i := range pick(d, "entries", 0, 1, 1, 2) {
		e := next.Entry(d.model().Now(), d.model().Now()+core.Instant(i))
		e.Data = d.data("entry")
		c.Entries = append(c.Entries, e)
	}

	if next.Skip {
		busy := next
		busy.Skipped++
		c.Busy = &busy
	}

	next.Fired++
	return c
}

// checkCalendar compares the schedules of a queue.
func (d *driver) checkCalendar(q ports.Queue) {
	compare(d, "Ticks", ports.TicksRequest{Shards: core.Shards(q.Name, q.Shards), Limit: pick(d, "ticks", 0, 1, 100)},
		ports.ShardStore.Ticks)
	compare(d, "Schedules", ports.SchedulesRequest{
		Queue: q.Name,
		ID:    pick(d, "of id", append(randomIDs(), "", "", "", "")...),
		Name:  pick(d, "of name", "", "", "a", "a-b"),
		After: core.ScheduleKey{Name: pick(d, "after name", "", "", "a"), ID: pick(d, "after id", randomIDs()...)},
		Limit: pick(d, "schedules", 0, 1, 2),
	}, ports.ShardStore.Schedules)
	compare(d, "ScheduleNames", ports.ScheduleNamesRequest{
		Queue: q.Name, After: pick(d, "after", "", "", "a"), Limit: pick(d, "names", 0, 1, 2),
	}, ports.ShardStore.ScheduleNames)
}
