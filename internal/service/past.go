package service

import "github.com/skeinq/skein/inspect"

// PastQuery chooses a page of the records of what became of ids.
type PastQuery struct {
	After       string `query:"after" doc:"the value of next of the previous page; from is then ignored"`
	OldestFirst bool   `query:"oldest_first" doc:"list backwards: the oldest first"`
	Limit       int    `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of rows"`
	Shard       []int  `query:"shard" doc:"the index of a shard to list; may be repeated; by default all shards"`
	From        string `query:"from" doc:"begin at runs that were done at this time, inclusive"`
}

// past lists the records, without their results: those need the right to see payloads of the id.
func (c *call) past(q *PastQuery) (*List[inspect.Past], error) {
	p := PageQuery{After: q.After, Limit: q.Limit, Shard: q.Shard}
	o, err := c.options(&p, "time", q.From, "")
	if err != nil {
		return nil, err
	}

	records := c.inspector.Past(c.ctx, c.queue, inspect.PastOptions{
		OldestFirst: q.OldestFirst,
		After:       o.After,
		FromTime:    o.FromTime,
		Shards:      o.Shards,
		Limit:       o.Limit,
	})
	access := tagFilter[inspect.Past]{of: func(r *inspect.Past) ([]string, entry) { return nil, entry{cursor: r.Cursor} }}
	return page(c, &p, access, records)
}
