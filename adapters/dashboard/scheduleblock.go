package dashboard

import (
	"github.com/skeinq/skein/internal/service"
)

// blockRows is the number of names in the block on the page of a queue.
const blockRows = 10

// scheduleBlock is the block of schedules on the page of a queue or of an id.
type scheduleBlock struct {
	Table scheduleTable
	// More is the address of the page with all of them.
	More string
	// Failed is why they can't be read.
	Failed    string
	Unreached []string
}

// blockOfQueue returns the block of the page of a queue, of the snapshot.
func (c *call) blockOfQueue(s *snapshot) *scheduleBlock {
	b := &scheduleBlock{Table: scheduleTable{Label: "Schedules of the queue", Back: "queue", May: c.may()}}
	d := s.details[c.queue]
	if d == nil {
		return b
	}

	if d.schedulesFailed != nil {
		b.Failed = c.errorText(c.queue, "", d.schedulesFailed.Error())
	}
	if first := d.schedules[:min(len(d.schedules), blockRows)]; len(first) > 0 {
		b.Table.Rows = c.calendar(s).names(c.queue, c.door.Service.ScheduleNameRows(first))
		b.More = href("schedules", "q", c.queue)
	}
	return b
}

// blockOfID returns the block of the page of an id.
func (c *call) blockOfID(s *snapshot, id string) *scheduleBlock {
	b := &scheduleBlock{}
	b.Table = scheduleTable{Label: "Schedules of the id", Back: "id", Stood: fields("back.id", id), May: c.may()}
	reply, err := asked(c, service.Schedules, c.queue, &service.SchedulesQuery{ID: id, Limit: scheduleRows})
	if err != nil {
		b.Failed = c.errorText(c.queue, id, err.Error())
		return b
	}
	b.Table.Rows, b.Unreached = c.calendar(s).rows(c.queue, reply.Items), reply.Unreached
	return b
}
