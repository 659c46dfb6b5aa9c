package dashboard

import (
	"cmp"
	"context"
	"slices"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// faulty is a store with checks whose parts may fail or be unreachable.
type faulty struct {
	*memory.Store
	statsFail, nodesFail, historyFail, checksFail, jobsFail, auditFail error
	// silent is why no look and no list is answered.
	silent               error
	away                 []core.Shard
	checks               []ports.Check
	looks, lists, audits int
	// jobs are the requested lists of jobs.
	jobs []ports.JobsRequest
	// onHistory is called before a history is read.
	onHistory func()
	// revives is how many more steps of a revive succeed, if fails is set.
	revives int
	fails   error
	// unreadable are records of the first shard of orders that can't be read.
	unreadable []ports.QuarantinedRecord
	// schedulesAway are shards whose schedules can't be reached.
	schedulesAway []core.Shard
	// schedulesFail is why no schedule can be listed.
	schedulesFail error
	// schedulesDamaged is true if no schedule can be read.
	schedulesDamaged bool
	// groups changes the groups.
	groups func(*ports.GroupsReply)
}

func (s *faulty) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	reply, err := s.Store.Groups(ctx, r)
	if s.groups != nil {
		s.groups(&reply)
	}
	return reply, err
}

func (s *faulty) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	page, err := s.Store.Schedules(ctx, r)
	page.Unreached = s.schedulesAway
	return page, err
}

func (s *faulty) ScheduleNames(ctx context.Context, r ports.ScheduleNamesRequest) (ports.ScheduleNamesPage, error) {
	if s.schedulesFail != nil {
		return ports.ScheduleNamesPage{}, s.schedulesFail
	}
	page, err := s.Store.ScheduleNames(ctx, r)
	page.Unreached = s.schedulesAway
	if s.schedulesDamaged {
		for i := range page.Names {
			page.Names[i].First = core.Schedule{}
		}
	}
	return page, err
}

func (s *faulty) QuarantinedShards(
	ctx context.Context,
	r ports.QuarantinedShardsRequest,
) (ports.QuarantinedShards, error) {
	reply, err := s.Store.QuarantinedShards(ctx, r)
	if r.Queue == "orders" && len(s.unreadable) > 0 {
		reply.Shards = append(reply.Shards, core.Shard{Queue: r.Queue})
	}
	return reply, err
}

func (s *faulty) Quarantined(_ context.Context, r ports.QuarantineRequest) (ports.QuarantinePage, error) {
	if r.Shard.Index != 0 {
		return ports.QuarantinePage{}, nil
	}
	return ports.QuarantinePage{Records: s.unreadable}, nil
}

func (s *faulty) Discard(_ context.Context, r ports.DiscardRequest) (int, error) {
	before := len(s.unreadable)
	s.unreadable = slices.DeleteFunc(s.unreadable, func(q ports.QuarantinedRecord) bool {
		return slices.Contains(r.Keys, q.Key)
	})
	return before - len(s.unreadable), nil
}

func (s *faulty) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	s.looks++
	if err := cmp.Or(s.silent, s.statsFail); err != nil {
		return nil, err
	}
	stats, err := s.Store.Stats(ctx, r)
	for at := range stats {
		if n := int64(len(s.unreadable)); n > 0 && stats[at].Queue.Name == "orders" {
			stats[at].Quarantined, stats[at].Shards[0].Quarantined = n, n
		}
		for _, shard := range s.away {
			if shard.Queue == stats[at].Queue.Name {
				stats[at].Unreached = append(stats[at].Unreached, shard)
				kept := stats[at].Shards[:0]
				for _, sh := range stats[at].Shards {
					if sh.Shard != shard {
						kept = append(kept, sh)
					}
				}
				stats[at].Shards = kept
			}
		}
	}
	return stats, err
}

func (s *faulty) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	if s.silent != nil {
		return ports.ClaimedPage{}, s.silent
	}
	return s.Store.Claimed(ctx, r)
}

func (s *faulty) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	s.lists++
	if s.silent != nil {
		return ports.MorguePage{}, s.silent
	}
	return s.Store.Morgue(ctx, r)
}

func (s *faulty) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	s.jobs = append(s.jobs, r)
	if err := cmp.Or(s.silent, s.jobsFail); err != nil {
		return ports.JobsPage{}, err
	}
	return s.Store.Jobs(ctx, r)
}

func (s *faulty) Actions(ctx context.Context, r ports.ActionsRequest) ([]ports.Action, error) {
	s.audits++
	if err := cmp.Or(s.silent, s.auditFail); err != nil {
		return nil, err
	}
	return s.Store.Actions(ctx, r)
}

func (s *faulty) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	if s.silent != nil {
		return ports.Found{}, s.silent
	}
	return s.Store.Find(ctx, r)
}

func (s *faulty) Nodes(ctx context.Context) (ports.NodesReply, error) {
	if s.nodesFail != nil {
		return ports.NodesReply{}, s.nodesFail
	}
	return s.Store.Nodes(ctx)
}

func (s *faulty) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	if s.onHistory != nil {
		s.onHistory()
	}
	if s.historyFail != nil {
		return ports.HistoryReply{}, s.historyFail
	}
	for _, shard := range s.away { // the first one has the history
		if shard.Queue == r.Queue && shard.Index == 0 {
			return ports.HistoryReply{Unreached: []core.Shard{shard}}, nil
		}
	}
	return s.Store.History(ctx, r)
}

func (s *faulty) Revive(ctx context.Context, r ports.DeadLetterStep) (ports.StepReply, error) {
	if s.revives--; s.fails != nil && s.revives < 0 {
		return ports.StepReply{}, s.fails
	}
	return s.Store.Revive(ctx, r)
}

func (s *faulty) Check(context.Context) ([]ports.Check, error) { return s.checks, s.checksFail }
