package service

import (
	"github.com/skeinq/skein/inspect"
)

// ScheduleNameRows returns the rows of names that an inspector has read, as they may be shown.
func (s *Service) ScheduleNameRows(names []inspect.ScheduleName) []Row[ScheduleNameRow] {
	v := view[ScheduleNameRow](&call{Service: s}, 0)
	rows := make([]Row[ScheduleNameRow], len(names))
	for at := range names {
		n := &names[at]
		rows[at] = v.Row(&ScheduleNameRow{n.Name, n.Count, ScheduleOf(&n.First)})
	}
	return rows
}
