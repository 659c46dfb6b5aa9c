package service

import (
	"time"

	"github.com/skeinq/skein/inspect"
)

// JobsQuery chooses a page of the queued jobs.
type JobsQuery struct {
	Sort string `query:"sort" default:"time" enum:"time,id,retrying,retrying_id,retries" doc:"by when they may run; by id, of a queue with an index of ids; those with a failure by time, id or how often they failed"`
	PageQuery
	From   string `query:"from" doc:"where to begin, inclusive: a time, an id or a number of retries, as it is sorted"`
	Prefix string `query:"prefix" doc:"only ids that begin so, of lists by id"`
	Fresh  bool   `query:"fresh" doc:"only jobs without a failure, sorted by time or id"`
}

// JobRow is a queued job.
type JobRow struct {
	ID           string    `json:"id" doc:"the entity that it is about"`
	PerformAt    time.Time `json:"perform_at" doc:"when it may run"`
	Retries      int       `json:"retries" doc:"how often it has failed"`
	Recoveries   int       `json:"recoveries" doc:"how often it has lost its process since it last ended"`
	FirstPush    time.Time `json:"first_push" doc:"when the oldest push that merged into it came"`
	LastError    string    `json:"last_error,omitempty" doc:"the text of its last failure"`
	PayloadCount int       `json:"payload_count" doc:"how many payloads it has"`
	Payloads     []Payload `json:"payloads,omitempty" doc:"the first of them, if they were asked for"`
	Cursor       string    `json:"cursor,omitempty" doc:"its place in the list, to go on after it"`
}

func (c *call) job(queue string, j *inspect.QueuedJob, payloads int) JobRow {
	return JobRow{
		ID: c.ID(queue, j.ID), PerformAt: j.PerformAt.UTC(), Retries: j.Retries, Recoveries: j.Recoveries, FirstPush: j.FirstPush.UTC(),
		LastError: c.ErrorText(queue, j.ID, j.LastError), PayloadCount: j.PayloadCount,
		Payloads: c.payloads(queue, j.ID, j.Payloads, payloads), Cursor: c.sealed(j.Cursor.String()),
	}
}

func (c *call) jobs(q *JobsQuery) (*List[JobRow], error) {
	o, err := c.options(&q.PageQuery, q.Sort, q.From, q.Prefix)
	if err != nil {
		return nil, err
	}
	o.Fresh = q.Fresh
	return page(c, q.Limit, c.inspector.Jobs(c.ctx, c.queue, o), func(j *inspect.QueuedJob) (JobRow, shown) {
		return c.job(c.queue, j, q.Payloads), shown{j.Cursor, sizeOf(j.Payloads)}
	})
}

// ClaimedQuery chooses a page of the claimed jobs.
type ClaimedQuery struct {
	PageQuery
	From string `query:"from" doc:"the time of a claim to begin at, inclusive"`
}

// ClaimedRow is a job that a server has claimed.
type ClaimedRow struct {
	JobRow
	Shard      string    `json:"shard" doc:"its shard, as orders/3"`
	Owner      string    `json:"owner" doc:"the id of the server that has it"`
	Node       string    `json:"node" doc:"the name of that"`
	Token      int64     `json:"token" doc:"the fencing token of the lease it was claimed under"`
	Since      time.Time `json:"since" doc:"when it was claimed"`
	Begun      bool      `json:"begun" doc:"whether its handler is known to have begun; of recovered jobs alone"`
	LeaseOver  bool      `json:"lease_over" doc:"whether its server is gone or has lost the shard"`
	LeaseUntil time.Time `json:"lease_until,omitzero" doc:"when that lease ends unless it is renewed"`
	Cancelled  bool      `json:"cancelled" doc:"whether a cancel was asked for"`
	Drop       bool      `json:"drop" doc:"whether that removes the job, and does not put it back"`
}

func (c *call) claimedJob(queue string, j *inspect.ClaimedJob, payloads int) ClaimedRow {
	return ClaimedRow{
		JobRow: c.job(queue, &j.QueuedJob, payloads), Shard: j.Shard.String(), Owner: j.Owner, Node: j.Node, Token: j.Token, Since: j.Since.UTC(),
		Begun: j.Begun, LeaseOver: j.LeaseOver, LeaseUntil: j.LeaseUntil.UTC(), Cancelled: j.Cancelled, Drop: j.Drop,
	}
}

func (c *call) claimed(q *ClaimedQuery) (*List[ClaimedRow], error) {
	o, err := c.options(&q.PageQuery, "time", q.From, "")
	if err != nil {
		return nil, err
	}
	return page(c, q.Limit, c.inspector.Claimed(c.ctx, c.queue, o), func(j *inspect.ClaimedJob) (ClaimedRow, shown) {
		return c.claimedJob(c.queue, j, q.Payloads), shown{j.Cursor, sizeOf(j.Payloads)}
	})
}

// MorgueQuery chooses a page of the dead letters.
type MorgueQuery struct {
	Sort string `query:"sort" default:"time" enum:"time,id" doc:"by when they last changed, or by id"`
	PageQuery
	From   string `query:"from" doc:"where to begin, inclusive: a time or an id, as it is sorted"`
	Prefix string `query:"prefix" doc:"only ids that begin so, sorted by id"`
	Group  string `query:"group" doc:"only dead letters of this group of errors, sorted by time: a group of the list of groups"`
}

// DeadRow is a dead letter.
type DeadRow struct {
	ID           string    `json:"id" doc:"the entity that it is about"`
	ChangedAt    time.Time `json:"changed_at" doc:"when a payload last came in or was edited"`
	LastError    string    `json:"last_error,omitempty" doc:"why the newest payload was buried"`
	Group        string    `json:"group" doc:"the group of that error, to list and to act on"`
	PayloadCount int       `json:"payload_count" doc:"how many payloads it has"`
	Payloads     []Payload `json:"payloads,omitempty" doc:"the first of them, if they were asked for"`
	Cursor       string    `json:"cursor,omitempty" doc:"its place in the list, to go on after it"`
}

func (c *call) deadLetter(queue string, d *inspect.DeadLetter, payloads int) DeadRow {
	return DeadRow{
		ID: c.ID(queue, d.ID), ChangedAt: d.ChangedAt.UTC(), LastError: c.ErrorText(queue, d.ID, d.LastError), Group: c.groupKey(d.Group),
		PayloadCount: d.PayloadCount, Payloads: c.payloads(queue, d.ID, d.Payloads, payloads), Cursor: c.sealed(d.Cursor.String()),
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
	return page(c, q.Limit, c.inspector.Morgue(c.ctx, c.queue, o), func(d *inspect.DeadLetter) (DeadRow, shown) {
		return c.deadLetter(c.queue, d, q.Payloads), shown{d.Cursor, sizeOf(d.Payloads)}
	})
}
