package service

import "github.com/skeinq/skein/inspect"

// MorgueQuery chooses a page of the dead letters.
type MorgueQuery struct {
	Sort string `query:"sort" default:"time" enum:"time,id" doc:"by the time of the last change, or by id"`
	PageQuery
	From   string `query:"from" doc:"where to begin, inclusive: a time or an id, according to sort"`
	Prefix string `query:"prefix" doc:"only ids with this prefix, sorted by id"`
	Tag    string `query:"tag" doc:"only dead letters with this tag; a page then ends after 10,000 dead letters, 1,000 with payloads, or 2.5 s, and may be empty and have a next one"`
	Group  string `query:"group" doc:"only dead letters of this group, from the list of groups, sorted by time"`
}

func (c *call) morgue(q *MorgueQuery) (*List[inspect.DeadLetter], error) {
	o, err := c.options(&q.PageQuery, q.Sort, q.From, q.Prefix)
	if err != nil {
		return nil, err
	}
	if o.Group, err = c.group(q.Group); err != nil {
		return nil, err
	}
	f, err := tagged(&o, q.Tag, func(d *inspect.DeadLetter) ([]string, entry) {
		return d.Tags, entry{d.Cursor, sizeOf(d.Payloads)}
	})
	if err != nil {
		return nil, err
	}

	return page(c, &q.PageQuery, f, c.inspector.Morgue(c.ctx, c.queue, o))
}
