package service

import "github.com/skeinq/skein/inspect"

// ScheduleNameRows returns the rows of names that an inspector has read, as they may be shown.
func (s *Service) ScheduleNameRows(names []inspect.ScheduleName) []ScheduleNameRow {
	c := &call{Service: s}
	rows := make([]ScheduleNameRow, len(names))
	for at := range names {
		n := &names[at]
		rows[at] = ScheduleNameRow{n.Name, n.Count, c.schedule(&n.First, 0)}
	}
	return rows
}
