package service

import "github.com/skeinq/skein/inspect"

// JobsQuery chooses a page of the queued jobs.
type JobsQuery struct {
	Sort string `query:"sort" default:"time" enum:"time,id,retrying,retrying_id,retries" doc:"by due time; by id, in a queue with an index of ids; or failed jobs by time, by id or by failures"`
	PageQuery
	From   string `query:"from" doc:"where to begin, inclusive: a time, an id or a number of retries, according to sort"`
	Prefix string `query:"prefix" doc:"only ids with this prefix, in lists by id"`
	Fresh  bool   `query:"fresh" doc:"only jobs without a failure, sorted by time or id"`
	Tag    string `query:"tag" doc:"only jobs with this tag; a page then ends after 10,000 jobs, 1,000 with payloads, or 2.5 s, and may be empty and have a next one"`
	Held   bool   `query:"held" doc:"only held jobs, sorted by time or retrying, ascending, without from, prefix and fresh"`
}

func (c *call) jobs(q *JobsQuery) (*List[inspect.QueuedJob], error) {
	o, err := c.options(&q.PageQuery, q.Sort, q.From, q.Prefix)
	if err != nil {
		return nil, err
	}

	o.Fresh, o.Held = q.Fresh, q.Held
	f, err := tagged(&o, q.Tag, func(j *inspect.QueuedJob) ([]string, entry) {
		return j.Tags, entry{j.Cursor, sizeOf(j.Payloads)}
	})
	if err != nil {
		return nil, err
	}

	return page(c, &q.PageQuery, f, c.inspector.Jobs(c.ctx, c.queue, o))
}

// ClaimedQuery chooses a page of the claimed jobs.
type ClaimedQuery struct {
	PageQuery
	From string `query:"from" doc:"begin at claims of this time, inclusive"`
	Tag  string `query:"tag" doc:"only jobs with this tag; a page then ends after 10,000 jobs, 1,000 with payloads, or 2.5 s, and may be empty and have a next one"`
}

func (c *call) claimed(q *ClaimedQuery) (*List[inspect.ClaimedJob], error) {
	o, err := c.options(&q.PageQuery, "time", q.From, "")
	if err != nil {
		return nil, err
	}
	f, err := tagged(&o, q.Tag, func(j *inspect.ClaimedJob) ([]string, entry) {
		return j.Tags, entry{j.Cursor, sizeOf(j.Payloads)}
	})
	if err != nil {
		return nil, err
	}

	return page(c, &q.PageQuery, f, c.inspector.Claimed(c.ctx, c.queue, o))
}
