package service

import (
	"time"

	"github.com/skeinq/skein/inspect"
)

// MorgueQuery chooses a page of the dead letters.
type MorgueQuery struct {
	Sort string `query:"sort" default:"time" enum:"time,id" doc:"by the time of the last change, or by id"`
	PageQuery
	From   string `query:"from" doc:"where to begin, inclusive: a time or an id, according to sort"`
	Prefix string `query:"prefix" doc:"only ids with this prefix, sorted by id"`
	Tag    string `query:"tag" doc:"only dead letters with this tag; a page then ends after 10,000 dead letters, 1,000 with payloads, or 2.5 s, and may be empty and have a next one"`
	Group  string `query:"group" doc:"only dead letters of this group, from the list of groups, sorted by time"`
}

// DeadRow is a dead letter.
type DeadRow struct {
	ID           string    `json:"id" doc:"the entity that it is about"`
	ChangedAt    time.Time `json:"changed_at" doc:"when a payload was last added or edited"`
	LastError    string    `json:"last_error,omitempty" doc:"the error of the newest payload"`
	Group        string    `json:"group" doc:"the group of that error, for lists and actions: a key, encrypted if errors are redacted"`
	Tags         []string  `json:"tags,omitempty" doc:"the tags of the buried jobs, in the order of their bytes; absent if ids are redacted"`
	PayloadCount int       `json:"payload_count" doc:"the number of its payloads"`
	Payloads     []Payload `json:"payloads,omitempty" doc:"its first payloads, if the request has payloads"`
	Cursor       string    `json:"cursor,omitempty" doc:"its place in the list; after this cursor the next row begins"`
}

func (c *call) deadLetter(queue string, d *inspect.DeadLetter, payloads int) DeadRow {
	return DeadRow{
		ID:           c.ID(queue, d.ID),
		ChangedAt:    d.ChangedAt.UTC(),
		LastError:    c.ErrorText(queue, d.ID, d.LastError),
		Group:        c.groupKey(d.Group),
		Tags:         c.tags(d.Tags),
		PayloadCount: d.PayloadCount,
		Payloads:     c.payloads(queue, d.ID, d.Payloads, payloads),
		Cursor:       c.sealed(d.Cursor.String()),
	}
}

func (c *call) morgue(q *MorgueQuery) (*List[DeadRow], error) {
	o, err := c.options(&q.PageQuery, q.Sort, q.From, q.Prefix)
	if err != nil {
		return nil, err
	}
	if o.Group, err = c.group(q.Group); err != nil {
		return nil, err
	}
	f, err := tagged(&o, q.Tag, func(d *inspect.DeadLetter) ([]string, shown) {
		return d.Tags, shown{d.Cursor, sizeOf(d.Payloads)}
	})
	if err != nil {
		return nil, err
	}

	return page(c, q.Limit, f, c.inspector.Morgue(c.ctx, c.queue, o), func(d *inspect.DeadLetter) DeadRow {
		return c.deadLetter(c.queue, d, q.Payloads)
	})
}
