package dashboard

import (
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// maxUnreadable is the maximum number of unreadable records on a page.
const maxUnreadable = 50

// unreadableRow is a record that was set aside.
type unreadableRow struct {
	*inspect.QuarantinedRecord
	Bytes int64
	Data  payload
}

// unreadableBody is the page of records that were set aside.
type unreadableBody struct {
	Queue string
	Now   time.Time
	Rows  []unreadableRow
	More  bool
	May   *rights
}

// unreadable lists the records of a queue that the store can't read.
func (c *call) unreadable() (*view, error) {
	_, stats, err := c.of()
	if err != nil {
		return nil, err
	}

	reply, err := asked(c, service.Quarantine, c.queue, &service.QuarantineQuery{Limit: maxUnreadable})
	if err != nil {
		return nil, err
	}

	b := &unreadableBody{Queue: c.queue, Now: stats.Now, More: len(reply.Items) == maxUnreadable, May: c.may()}
	for at := range reply.Items {
		row := reply.Items[at].Value()
		b.Rows = append(b.Rows, unreadableRow{row, int64(row.Size), payload{service.Payload{Data: row.Stored}}})
	}
	return &view{page: "unreadable", title: c.queue + ": unreadable", live: true, body: b}, nil
}
