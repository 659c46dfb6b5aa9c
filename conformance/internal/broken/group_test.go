package broken

import (
	"context"
	"slices"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// regroups is a store whose turns bury in the group that change returns.
func regroups(s full, change func(ctx context.Context, shard core.Shard, x *core.Settlement)) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		r.Settlements = slices.Clone(r.Settlements)
		for i := range r.Settlements {
			change(ctx, r.Lease.Shard, &r.Settlements[i])
		}
		return s.Turn(ctx, r)
	})
}

// forgetsGroups buries all in one group.
func forgetsGroups(s full) full {
	return regroups(s, func(_ context.Context, _ core.Shard, x *core.Settlement) { x.Letter.Group = "" })
}

// shortensGroups keeps less of a name than it could.
func shortensGroups(s full) full {
	return regroups(s, func(_ context.Context, _ core.Shard, x *core.Settlement) {
		x.Letter.Group = core.CutText(x.Letter.Group, 40)
	})
}

// keepsFirstGroup leaves a dead letter in the group of its first burial.
func keepsFirstGroup(s full) full {
	return regroups(s, func(ctx context.Context, shard core.Shard, x *core.Settlement) {
		if found, err := s.Find(ctx, ports.FindRequest{Queue: shard.Queue, ID: x.ID, Payloads: 1000}); err == nil &&
			found.DeadLetter != nil {
			x.Letter.Group = found.DeadLetter.Group
		}
	})
}

// fillsGroupsEarly has room for fewer groups than it should.
func fillsGroupsEarly(s full) full {
	return regroups(s, func(ctx context.Context, shard core.Shard, x *core.Settlement) {
		reply, err := s.Groups(ctx, ports.GroupsRequest{Queue: shard.Queue, Limit: ports.MaxPage})
		known := slices.ContainsFunc(reply.Groups, func(g core.Group) bool { return g.Name == x.Letter.Group })
		if err == nil && !known && reply.Total >= 900 {
			x.Letter.Group = core.OtherGroup
		}
	})
}

// countsGroups changes a store's counts of groups.
func countsGroups(s full, before func(*ports.GroupsRequest), after func(*ports.GroupsReply)) full {
	return replace(s, "Groups", func(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
		before(&r)
		reply, err := s.Groups(ctx, r)
		after(&reply)
		return reply, err
	})
}

func sameGroups(*ports.GroupsRequest) {}

// beginsGroupsAnew reports that a group began with its newest burial.
func beginsGroupsAnew(s full) full {
	return countsGroups(s, sameGroups, func(reply *ports.GroupsReply) {
		for i := range reply.Groups {
			reply.Groups[i].First = reply.Groups[i].Last
		}
	})
}

// keepsEmptyGroups keeps the First of a group that has become empty.
func keepsEmptyGroups(s full) full {
	first := map[string]core.Instant{}
	return countsGroups(s, sameGroups, func(reply *ports.GroupsReply) {
		for i := range reply.Groups {
			g := &reply.Groups[i]
			if since, known := first[g.Name]; known {
				g.First = since
			}
			first[g.Name] = g.First
		}
	})
}

// countsLimited returns the number of the listed groups as the total.
func countsLimited(s full) full {
	return countsGroups(s, sameGroups, func(reply *ports.GroupsReply) { reply.Total = len(reply.Groups) })
}

// countsGroupsOfAll counts all shards whichever are requested.
func countsGroupsOfAll(s full) full {
	return countsGroups(s, func(r *ports.GroupsRequest) { r.Shards = nil }, func(*ports.GroupsReply) {})
}

// hidesUnreachedGroups does not report shards that it can't reach.
func hidesUnreachedGroups(s full) full {
	return countsGroups(s, sameGroups, func(reply *ports.GroupsReply) { reply.Unreached = nil })
}

// countsDamagedGroups counts set-aside records in their groups.
func countsDamagedGroups(s full) full {
	return replace(s, "Groups", func(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
		reply, err := s.Groups(ctx, r)
		stats, statsErr := s.Stats(ctx, ports.StatsRequest{Queues: []string{r.Queue}})
		if err == nil && statsErr == nil && len(reply.Groups) > 0 {
			reply.Groups[0].Count += stats[0].Quarantined
		}
		return reply, err
	})
}

// editsIntoOther moves an edited dead letter to core.OtherGroup.
func editsIntoOther(s full) full {
	edited := map[string]bool{}
	noted := replace(s, "Edit", func(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
		edited[r.ID] = true
		return s.Edit(ctx, r)
	})
	return replace(noted, "Find", func(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
		found, err := noted.Find(ctx, r)
		if edited[r.ID] && found.DeadLetter != nil {
			found.DeadLetter.Group = core.OtherGroup
		}
		return found, err
	})
}

// settlesTurnsOneByOne carries out each settlement of a turn by itself.
func settlesTurnsOneByOne(s full) full {
	return replace(s, "Turn", func(ctx context.Context, r ports.TurnRequest) (ports.TurnReply, error) {
		r.Settlements = slices.DeleteFunc(slices.Clone(r.Settlements), func(x core.Settlement) bool {
			return s.Settle(ctx, r.Lease.Shard, []core.Settlement{x}) == nil
		})
		r.Resent = true
		return s.Turn(ctx, r)
	})
}

// listsGroups changes requests for lists of a group.
func listsGroups(s full, before func(*ports.MorgueRequest)) full {
	return replace(s, "Morgue", func(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
		if r.Group != "" {
			before(&r)
		}
		return s.Morgue(ctx, r)
	})
}

// forgetsTheGroup lists all dead letters behind the first page of a group.
func forgetsTheGroup(s full) full {
	return listsGroups(s, func(r *ports.MorgueRequest) {
		if r.After != (ports.Cursor{}) {
			r.Group = ""
		}
	})
}

// listsGroupsByID ignores the group of a list by id.
func listsGroupsByID(s full) full {
	return listsGroups(s, func(r *ports.MorgueRequest) {
		if r.ByID {
			r.Group = ""
		}
	})
}

// purgesGroups changes requests to purge a group.
func purgesGroups(s full, before func(*ports.DeadLetterStep)) full {
	return replace(s, "Purge", func(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
		if step.Group != "" {
			before(&step)
		}
		return s.Purge(ctx, step)
	})
}

func purgesAllGroups(s full) full {
	return purgesGroups(s, func(step *ports.DeadLetterStep) { step.Group = "" })
}

func purgesGroupsOfAnyAge(s full) full {
	return purgesGroups(s, func(step *ports.DeadLetterStep) { step.Before = core.MaxInstant })
}

// settlesWithoutGroups loses the group of settlements outside of a turn.
func settlesWithoutGroups(s full) full {
	return replaceErr(s, "Settle", func(ctx context.Context, r storekit.SettleRequest) error {
		for i := range r.Settlements {
			r.Settlements[i].Letter.Group = ""
		}
		return s.Settle(ctx, r.Shard, r.Settlements)
	})
}

// losesGroupsInRecounts resets the count and the First of each group once a shard was recounted.
func losesGroupsInRecounts(s full) full {
	recounted := false
	noted := replace(s, "Recount", func(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
		recounted = true
		return s.Recount(ctx, r)
	})
	return countsGroups(noted, sameGroups, func(reply *ports.GroupsReply) {
		for i := range reply.Groups {
			if recounted {
				reply.Groups[i].Count, reply.Groups[i].First = 1, reply.Now
			}
		}
	})
}

// keepsForgottenGroups returns the earlier groups of a queue that has no groups.
func keepsForgottenGroups(s full) full {
	var before []core.Group
	return countsGroups(s, sameGroups, func(reply *ports.GroupsReply) {
		if len(reply.Groups) == 0 {
			reply.Groups = append(before, core.Group{Name: core.OtherGroup, Count: 1})
		}
		before = reply.Groups
	})
}

func brokenGroups() []brokenStore {
	return []brokenStore{
		{"buries all in one group", "group/counts burials", wrapped(forgetsGroups)},
		{"restarts a group at each burial", "group/counts burials", wrapped(beginsGroupsAnew)},
		{
			"keeps a part of a group's name",
			"group/keeps names, or the part of them that GroupName keeps",
			wrapped(shortensGroups),
		},
		{"keeps the group of the first burial", "group/is the group of the newest burial", wrapped(keepsFirstGroup)},
		{
			"removes an edited dead letter from its group",
			"group/stays after an edit and with the payloads that are left",
			wrapped(editsIntoOther),
		},
		{"remembers groups that were empty", "group/is removed with its last dead letter", wrapped(keepsEmptyGroups)},
		{
			"remembers a group's first burial as its earliest",
			"group/keeps its earliest and latest burial when the clock steps back",
			wrapped(keepsEmptyGroups),
		},
		{
			"counts the burials of one call one by one",
			"group/counts the burials of one call together",
			wrapped(settlesTurnsOneByOne),
		},
		{"has room for fewer groups", "group/keeps MaxGroups groups apart", wrapped(fillsGroupsEarly)},
		{"counts the groups that it returns", "group/is listed by size, up to the limit", wrapped(countsLimited)},
		{
			"counts the groups of all shards when asked for some",
			"group/is counted in the given shards only",
			wrapped(countsGroupsOfAll),
		},
		{
			"lists all groups after the first page of one group",
			"group/lists its dead letters in both directions",
			wrapped(forgetsTheGroup),
		},
		{
			"purges all groups when asked for one",
			"group/is revived and purged without other groups",
			wrapped(purgesAllGroups),
		},
		{
			"purges a group whenever it was buried",
			"group/limits a step to dead letters before an instant",
			wrapped(purgesGroupsOfAnyAge),
		},
		{
			"ignores the group of a list by id",
			"group/is refused in a request that can't have one",
			wrapped(listsGroupsByID),
		},
		{"keeps the groups of a forgotten queue", "group/is removed with its queue", wrapped(keepsForgottenGroups)},
		{
			"restarts the counts of groups in a recount",
			"group/is unchanged by a recount if its count was right",
			wrapped(losesGroupsInRecounts),
		},
		{"loses the group of jobs settled outside a turn", "settler/buries in a group", wrapped(settlesWithoutGroups)},
		{"hides the shards of groups", "unreached/groups count the other shards", wrapped(hidesUnreachedGroups)},
		{
			"counts quarantined dead letters in their group",
			"damaged/a dead letter leaves its group",
			wrapped(countsDamagedGroups),
		},
	}
}
