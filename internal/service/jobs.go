package service

import (
	"time"

	"github.com/skeinq/skein/inspect"
)

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

// JobRow is a queued job.
type JobRow struct {
	ID           string    `json:"id" doc:"the entity that it is about"`
	PerformAt    time.Time `json:"perform_at" doc:"when the job may run"`
	Retries      int       `json:"retries" doc:"the number of its failures"`
	Held         bool      `json:"held,omitempty" doc:"whether it is held: its retries are used up, and it never runs until it is released"`
	Recoveries   int       `json:"recoveries" doc:"the number of times that its process was lost since its last settlement"`
	FirstPush    time.Time `json:"first_push" doc:"the time of the oldest push that merged into it"`
	LastError    string    `json:"last_error,omitempty" doc:"the text of its last failure"`
	Tags         []string  `json:"tags,omitempty" doc:"its tags, in the order of their bytes; absent if ids are redacted"`
	PayloadCount int       `json:"payload_count" doc:"the number of its payloads"`
	Payloads     []Payload `json:"payloads,omitempty" doc:"its first payloads, if the request has payloads"`
	Cursor       string    `json:"cursor,omitempty" doc:"its place in the list; after this cursor the next row begins"`
}

func (c *call) job(queue string, j *inspect.QueuedJob, payloads int) JobRow {
	return JobRow{
		ID:           c.ID(queue, j.ID),
		PerformAt:    j.PerformAt.UTC(),
		Retries:      j.Retries,
		Held:         j.Held,
		Recoveries:   j.Recoveries,
		FirstPush:    j.FirstPush.UTC(),
		LastError:    c.ErrorText(queue, j.ID, j.LastError),
		Tags:         c.tags(j.Tags),
		PayloadCount: j.PayloadCount,
		Payloads:     c.payloads(queue, j.ID, j.Payloads, payloads),
		Cursor:       c.sealed(j.Cursor.String()),
	}
}

func (c *call) jobs(q *JobsQuery) (*List[JobRow], error) {
	o, err := c.options(&q.PageQuery, q.Sort, q.From, q.Prefix)
	if err != nil {
		return nil, err
	}

	o.Fresh, o.Held = q.Fresh, q.Held
	f, err := tagged(&o, q.Tag, func(j *inspect.QueuedJob) ([]string, shown) {
		return j.Tags, shown{j.Cursor, sizeOf(j.Payloads)}
	})
	if err != nil {
		return nil, err
	}

	return page(c, q.Limit, f, c.inspector.Jobs(c.ctx, c.queue, o), func(j *inspect.QueuedJob) JobRow {
		return c.job(c.queue, j, q.Payloads)
	})
}

// ClaimedQuery chooses a page of the claimed jobs.
type ClaimedQuery struct {
	PageQuery
	From string `query:"from" doc:"begin at claims of this time, inclusive"`
	Tag  string `query:"tag" doc:"only jobs with this tag; a page then ends after 10,000 jobs, 1,000 with payloads, or 2.5 s, and may be empty and have a next one"`
}

// ClaimedRow is a job that a server has claimed.
type ClaimedRow struct {
	JobRow
	Shard      string    `json:"shard" doc:"its shard, as orders/3"`
	Owner      string    `json:"owner" doc:"the owner id of the server that claimed it"`
	Node       string    `json:"node" doc:"the name of that server"`
	Token      int64     `json:"token" doc:"the fencing token of the claim's lease"`
	Since      time.Time `json:"since" doc:"when it was claimed"`
	Begun      bool      `json:"begun" doc:"for recovered jobs: whether the handler is known to have started"`
	LeaseOver  bool      `json:"lease_over" doc:"whether its server is gone or has lost the shard"`
	LeaseUntil time.Time `json:"lease_until,omitzero" doc:"when the claim's lease ends unless it is renewed"`
	Cancelled  bool      `json:"cancelled" doc:"whether a cancel was requested"`
	Drop       bool      `json:"drop" doc:"whether the cancel removes the job instead of putting it back"`
}

func (c *call) claimedJob(queue string, j *inspect.ClaimedJob, payloads int) ClaimedRow {
	return ClaimedRow{
		JobRow:     c.job(queue, &j.QueuedJob, payloads),
		Shard:      j.Shard.String(),
		Owner:      j.Owner,
		Node:       j.Node,
		Token:      j.Token,
		Since:      j.Since.UTC(),
		Begun:      j.Begun,
		LeaseOver:  j.LeaseOver,
		LeaseUntil: j.LeaseUntil.UTC(),
		Cancelled:  j.Cancelled,
		Drop:       j.Drop,
	}
}

func (c *call) claimed(q *ClaimedQuery) (*List[ClaimedRow], error) {
	o, err := c.options(&q.PageQuery, "time", q.From, "")
	if err != nil {
		return nil, err
	}
	f, err := tagged(&o, q.Tag, func(j *inspect.ClaimedJob) ([]string, shown) {
		return j.Tags, shown{j.Cursor, sizeOf(j.Payloads)}
	})
	if err != nil {
		return nil, err
	}

	return page(c, q.Limit, f, c.inspector.Claimed(c.ctx, c.queue, o), func(j *inspect.ClaimedJob) ClaimedRow {
		return c.claimedJob(c.queue, j, q.Payloads)
	})
}
