package storekit

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// The methods of [ports.Inspector].

func (s *intercepted) Stats(ctx context.Context, r ports.StatsRequest) ([]ports.QueueStats, error) {
	return pass(ctx, s, "Stats", r, ports.ShardStore.Stats)
}

func (s *intercepted) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	return pass(ctx, s, "History", r, ports.ShardStore.History)
}

func (s *intercepted) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return pass(ctx, s, "Jobs", r, ports.ShardStore.Jobs)
}

func (s *intercepted) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	return pass(ctx, s, "Claimed", r, ports.ShardStore.Claimed)
}

func (s *intercepted) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	return pass(ctx, s, "Morgue", r, ports.ShardStore.Morgue)
}

func (s *intercepted) Past(ctx context.Context, r ports.PageRequest) (ports.PastPage, error) {
	return pass(ctx, s, "Past", r, ports.ShardStore.Past)
}

func (s *intercepted) Groups(ctx context.Context, r ports.GroupsRequest) (ports.GroupsReply, error) {
	return pass(ctx, s, "Groups", r, ports.ShardStore.Groups)
}

func (s *intercepted) ChangeSchedules(
	ctx context.Context,
	r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	return pass(ctx, s, "ChangeSchedules", r, ports.ShardStore.ChangeSchedules)
}

func (s *intercepted) Ticks(ctx context.Context, r ports.TicksRequest) (ports.TicksReply, error) {
	return pass(ctx, s, "Ticks", r, ports.ShardStore.Ticks)
}

func (s *intercepted) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	return pass(ctx, s, "Schedules", r, ports.ShardStore.Schedules)
}

func (s *intercepted) ScheduleNames(
	ctx context.Context,
	r ports.ScheduleNamesRequest,
) (ports.ScheduleNamesPage, error) {
	return pass(ctx, s, "ScheduleNames", r, ports.ShardStore.ScheduleNames)
}

func (s *intercepted) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	return pass(ctx, s, "Find", r, ports.ShardStore.Find)
}

func (s *intercepted) Pending(ctx context.Context, r ports.PendingRequest) (ports.PendingReply, error) {
	return pass(ctx, s, "Pending", r, ports.ShardStore.Pending)
}
