package service

import (
	"time"

	"github.com/skeinq/skein/inspect"
)

// QueueRow is a queue.
type QueueRow struct {
	Name     string `json:"name" doc:"its name"`
	Shards   int    `json:"shards" doc:"its shard count"`
	IndexIDs bool   `json:"index_ids" doc:"whether its jobs can be listed by id"`
	Merge    string `json:"merge" doc:"its merge rule: union, newest, latest(n), every or every.last(n)"`
	Paused   bool   `json:"paused" doc:"whether the queue is paused: servers claim none of its jobs"`
}

func (c *call) queues(*NoQuery) (*List[QueueRow], error) {
	queues, err := c.inspector.Queues(c.ctx)
	if err != nil {
		return nil, err
	}
	reply := newList[QueueRow](nil)
	for _, q := range queues {
		reply.Items = append(reply.Items, QueueRow{q.Name, q.Shards, q.IndexIDs, q.Merge.String(), q.Paused})
	}
	return reply, nil
}

type historyQuery struct {
	From time.Time     `query:"from" doc:"where to begin; by default 24 hours ago"`
	To   time.Time     `query:"to" doc:"where to end, exclusive"`
	Step time.Duration `query:"step" default:"1m" doc:"the time of a row, in whole minutes"`
}

// HistoryRow is a minute or a step. Times are in seconds.
type HistoryRow struct {
	At            time.Time `json:"at" doc:"when the step begins"`
	Processed     uint64    `json:"processed" doc:"jobs done"`
	Failed        uint64    `json:"failed" doc:"jobs that failed or were buried"`
	WaitMean      float64   `json:"wait_mean" doc:"the seconds that a job waited to start, since it was due and pushed: the mean"`
	WaitDeviation float64   `json:"wait_deviation" doc:"the standard deviation of that time"`
	WaitP50       float64   `json:"wait_p50" doc:"the median of that time"`
	WaitP99       float64   `json:"wait_p99" doc:"the 99th percentile of that time"`
	RunMean       float64   `json:"run_mean" doc:"seconds from start to end of a job: the mean"`
	RunDeviation  float64   `json:"run_deviation" doc:"the standard deviation of that time"`
	RunP50        float64   `json:"run_p50" doc:"the median of that time"`
	RunP99        float64   `json:"run_p99" doc:"the 99th percentile of that time"`
}

func (c *call) history(q *historyQuery) (*List[HistoryRow], error) {
	minutes, err := c.inspector.History(c.ctx, c.queue, inspect.HistoryOptions{From: q.From, To: q.To, Step: q.Step})
	unreached, err := c.partial(err)
	if err != nil {
		return nil, err
	}

	reply := newList[HistoryRow](nil)
	reply.Unreached = shardNames(unreached)
	for at := range minutes {
		m := &minutes[at]
		reply.Items = append(reply.Items, HistoryRow{
			At:            m.At.UTC(),
			Processed:     m.Processed,
			Failed:        m.Failed,
			WaitMean:      m.WaitMean.Seconds(),
			WaitDeviation: m.WaitDeviation.Seconds(),
			WaitP50:       m.Wait.Quantile(0.5).Seconds(),
			WaitP99:       m.Wait.Quantile(0.99).Seconds(),
			RunMean:       m.RunMean.Seconds(),
			RunDeviation:  m.RunDeviation.Seconds(),
			RunP50:        m.Run.Quantile(0.5).Seconds(),
			RunP99:        m.Run.Quantile(0.99).Seconds(),
		})
	}
	return reply, nil
}

// QuarantineQuery bounds a list of records that can't be read.
type QuarantineQuery struct {
	Limit int `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of records, in order of shards"`
}

func (q *QuarantineQuery) about(a *Action) { a.Verb = verbViewPayload }

// QuarantineRow is a record that can't be read.
type QuarantineRow struct {
	Shard  string    `json:"shard" doc:"its shard, as orders/3"`
	Index  int       `json:"index" doc:"the index of that shard, for discard"`
	Key    string    `json:"key" doc:"its key within the shard, for discard"`
	ID     string    `json:"id" doc:"the entity of the record, as far as it can be read"`
	Place  string    `json:"place" doc:"the place of the record: queued, claimed, dead or schedule"`
	Since  time.Time `json:"since" doc:"when it was set aside"`
	Reason string    `json:"reason" doc:"why the record can't be read"`
	Size   int       `json:"size" doc:"its size in bytes"`
	Octets
}

func (c *call) quarantine(q *QuarantineQuery) (*List[QuarantineRow], error) {
	reply := newList[QuarantineRow](nil)
	for r, err := range c.inspector.Quarantined(c.ctx, c.queue) {
		if err != nil {
			return nil, err
		}
		if len(reply.Items) >= q.Limit {
			break
		}

		reply.Items = append(reply.Items, QuarantineRow{
			Shard:  r.Shard.String(),
			Index:  r.Shard.Index,
			Key:    c.sealed(r.Key),
			ID:     c.ID(c.queue, r.ID),
			Place:  r.Place,
			Since:  r.Since.UTC(),
			Reason: c.ErrorText(c.queue, r.ID, r.Reason),
			Size:   r.Size,
			Octets: OctetsOf(c.bytes(c.queue, r.ID, r.Stored)),
		})
	}
	return reply, nil
}

type nodeQueue struct {
	Queue         string `json:"queue" doc:"the queue"`
	Merge         string `json:"merge" doc:"the merge rule that the server's program has; the queue's own may have been changed since"`
	MaxRetries    int    `json:"max_retries" doc:"the retries of a job on that server"`
	MaxRecoveries int    `json:"max_recoveries" doc:"the recoveries from which a job is on its last chance there"`
	MaxRunning    int    `json:"max_running" doc:"the maximum number of batches of the queue that run at once on all servers; 0 is no limit"`
	MaxLanes      int    `json:"max_lanes" doc:"the maximum number of lanes of the server that run this queue at once; 0 is no limit"`
	Parallel      int    `json:"parallel" doc:"the maximum number of batches of one of its shards that run at once on the server; 0 is no limit"`
	BatchSize     int    `json:"batch_size" doc:"the maximum number of jobs in a batch of this queue"`
	Shards        int    `json:"shards" doc:"leases of the queue that the server holds"`
	Running       int    `json:"running" doc:"jobs in handlers"`
	Busy          int    `json:"busy" doc:"lanes that run a batch of the queue"`
	Claimed       int    `json:"claimed" doc:"jobs that are claimed and have not started"`
}

type runningRow struct {
	Shard string    `json:"shard" doc:"its shard"`
	ID    string    `json:"id" doc:"the entity that it is about"`
	Since time.Time `json:"since" doc:"when the handler of the job started"`
}

// NodeRow is a server.
type NodeRow struct {
	Owner      string         `json:"owner" doc:"its owner id, new with each start"`
	Name       string         `json:"name" doc:"its name"`
	Host       string         `json:"host" doc:"the host on which it runs"`
	PID        int            `json:"pid" doc:"the id of its process"`
	Version    string         `json:"version,omitempty" doc:"the version of its program"`
	State      string         `json:"state" doc:"alive, draining or gone"`
	Lanes      int            `json:"lanes" doc:"the maximum number of batches that it runs at once"`
	Busy       int            `json:"busy" doc:"lanes that ran a batch at its last announcement"`
	Running    int            `json:"running" doc:"jobs in handlers"`
	Claimed    int            `json:"claimed" doc:"jobs that are claimed and have not started"`
	Shards     int            `json:"shards" doc:"leases that it holds"`
	Memory     int64          `json:"memory,omitempty" doc:"the memory of its process in bytes"`
	Goroutines int            `json:"goroutines,omitempty" doc:"the number of its goroutines"`
	ClockAhead float64        `json:"clock_ahead_seconds,omitempty" doc:"how far its clock is ahead of the store's, negative if it is behind"`
	StartedAt  time.Time      `json:"started_at" doc:"when it first announced itself"`
	ExpiresAt  time.Time      `json:"expires_at" doc:"when it counts as gone unless it announces itself again"`
	Queues     []nodeQueue    `json:"queues" doc:"its work for each queue"`
	Longest    []runningRow   `json:"longest" doc:"the running jobs that began first"`
	LastChance *LastChanceRow `json:"last_chance,omitempty" doc:"the job on its last chance that it runs; others wait for its end"`
}

func (c *call) nodes(*NoQuery) (*List[NodeRow], error) {
	nodes, err := c.inspector.Nodes(c.ctx)
	if err != nil {
		return nil, err
	}
	reply := newList[NodeRow](nil)
	for at := range nodes {
		reply.Items = append(reply.Items, c.node(&nodes[at]))
	}
	return reply, nil
}

func (c *call) node(n *inspect.Node) NodeRow {
	s := &n.Status
	row := NodeRow{
		Owner:      n.Owner,
		Name:       n.Name,
		Host:       n.Host,
		PID:        n.PID,
		Version:    n.Version,
		State:      n.State.String(),
		Lanes:      n.Lanes,
		Busy:       s.Busy,
		Running:    s.Running,
		Claimed:    s.Claimed,
		Shards:     s.Shards,
		Memory:     s.Memory,
		Goroutines: s.Goroutines,
		ClockAhead: s.ClockAhead.Seconds(),
		StartedAt:  n.StartedAt.UTC(),
		ExpiresAt:  n.ExpiresAt.UTC(),
		Queues:     []nodeQueue{},
		Longest:    []runningRow{},
		LastChance: c.lastChance(s.LastChance.Shard, s.LastChance.ID),
	}

	for _, q := range s.Queues {
		row.Queues = append(row.Queues, nodeQueue{
			q.Queue,
			q.Merge.String(),
			q.MaxRetries,
			q.MaxRecoveries,
			q.MaxRunning,
			q.MaxLanes,
			q.Parallel,
			q.BatchSize,
			q.Shards,
			q.Running,
			q.Busy,
			q.Claimed,
		})
	}
	for _, j := range s.Longest {
		row.Longest = append(row.Longest, runningRow{j.Shard.String(), c.ID(j.Shard.Queue, j.ID), j.Began.Time().UTC()})
	}
	return row
}

type checkRow struct {
	Name   string `json:"name" doc:"the name of the check"`
	Server string `json:"server,omitempty" doc:"the address of the checked server; absent if the check is for all servers"`
	Status string `json:"status" doc:"ok, unknown, warn or fail"`
	Value  string `json:"value" doc:"the value that the check found"`
	Advice string `json:"advice,omitempty" doc:"what to do"`
}

func (c *call) checks(*NoQuery) (*List[checkRow], error) {
	checks, err := c.inspector.Checks(c.ctx)
	if err != nil {
		return nil, err
	}

	reply := newList[checkRow](nil)
	for _, k := range checks {
		reply.Items = append(reply.Items, checkRow{
			k.Name,
			k.Server,
			k.Status.String(),
			c.ErrorText("", "", k.Value),
			k.Advice,
		})
	}
	return reply, nil
}
