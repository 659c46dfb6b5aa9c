package dashboard

import (
	"net/url"
	"strconv"
	"time"
)

// maxUnreadable is how many records that can't be read a page shows.
const maxUnreadable = 50

// unreadableRow is a record that was set aside.
type unreadableRow struct {
	Shard  string    `json:"shard"`
	Index  int       `json:"index"`
	Key    string    `json:"key"`
	ID     string    `json:"id"`
	Place  string    `json:"place"`
	Since  time.Time `json:"since"`
	Reason string    `json:"reason"`
	Bytes  int64     `json:"size"`
	payload
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
	var reply listOf[unreadableRow]
	if err := c.get(c.queue, "/quarantine", url.Values{"limit": {strconv.Itoa(maxUnreadable)}}, &reply); err != nil {
		return nil, err
	}
	b := &unreadableBody{Queue: c.queue, Now: stats.Now, Rows: reply.Items, More: len(reply.Items) == maxUnreadable, May: c.may()}
	return &view{page: "unreadable", title: c.queue + ": unreadable", live: true, body: b}, nil
}
