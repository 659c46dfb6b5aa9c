package redis

import (
	"context"
	"errors"

	"github.com/skeinq/skein/ports"
)

func (s *Store) ChangeSchedules(context.Context, ports.ChangeSchedulesRequest) (r ports.ChangeSchedulesReply, err error) {
	return r, errors.ErrUnsupported
}

func (s *Store) Ticks(context.Context, ports.TicksRequest) (r ports.TicksReply, err error) {
	return r, errors.ErrUnsupported
}

func (s *Store) Schedules(context.Context, ports.SchedulesRequest) (r ports.SchedulesPage, err error) {
	return r, errors.ErrUnsupported
}

func (s *Store) ScheduleNames(context.Context, ports.ScheduleNamesRequest) (r ports.ScheduleNamesPage, err error) {
	return r, errors.ErrUnsupported
}
