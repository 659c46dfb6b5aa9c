package service

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

func (c *call) queues(*NoQuery) (*List[inspect.Queue], error) {
	queues, err := c.inspector.Queues(c.ctx)
	if err != nil {
		return nil, err
	}
	return newList(rowsOf(c, queues)), nil
}

type historyQuery struct {
	From time.Time `query:"from" doc:"where to begin; by default 24 hours ago, or 30 days ago for days"`
	To   time.Time `query:"to" doc:"where to end, exclusive"`
	Step Step      `query:"step" default:"minute" doc:"the time of a row: minute, hour, day (whole days of UTC), or whole minutes such as 15m"`
}

// Step is the time of a row of a history. See [ParseStep].
type Step time.Duration

// ParseStep returns the step of a text: minute, hour, day or a duration. ok is false for another text.
func ParseStep(text string) (step Step, ok bool) {
	switch text {
	case "minute":
		return Step(time.Minute), true
	case "hour":
		return Step(time.Hour), true
	case "day":
		return Step(inspect.Day), true
	}
	d, err := time.ParseDuration(text)
	return Step(d), err == nil
}

// StepForms are the texts that [ParseStep] reads, for people.
const StepForms = "minute, hour, day, or a duration of whole minutes such as 15m"

// HistoryRow is a minute or a step. Times are in seconds.
type HistoryRow struct {
	At            time.Time     `json:"at" class:"public" doc:"when the step begins"`
	Processed     uint64        `json:"processed" class:"public" doc:"jobs done"`
	Failed        uint64        `json:"failed" class:"public" doc:"jobs that failed or were buried"`
	WaitMean      time.Duration `json:"wait_mean" class:"public" wide:"true" doc:"the seconds that a job waited to start, since it was due and pushed: the mean"`
	WaitDeviation time.Duration `json:"wait_deviation" class:"public" wide:"true" doc:"the standard deviation of that time"`
	WaitP50       time.Duration `json:"wait_p50" class:"public" doc:"the median of that time"`
	WaitP99       time.Duration `json:"wait_p99" class:"public" doc:"the 99th percentile of that time"`
	RunMean       time.Duration `json:"run_mean" class:"public" wide:"true" doc:"seconds from start to end of a job: the mean"`
	RunDeviation  time.Duration `json:"run_deviation" class:"public" wide:"true" doc:"the standard deviation of that time"`
	RunP50        time.Duration `json:"run_p50" class:"public" doc:"the median of that time"`
	RunP99        time.Duration `json:"run_p99" class:"public" doc:"the 99th percentile of that time"`
}

func (c *call) history(q *historyQuery) (*List[HistoryRow], error) {
	minutes, err := c.inspector.History(c.ctx, c.queue, inspect.HistoryOptions{
		From: q.From,
		To:   q.To,
		Step: time.Duration(q.Step),
	})
	unreached, err := c.partial(err)
	if err != nil {
		return nil, err
	}

	rows := make([]HistoryRow, len(minutes))
	for at := range minutes {
		rows[at] = HistoryOf(&minutes[at])
	}
	reply := newList(rowsOf(c, rows))
	reply.Unreached = shardNames(unreached)
	return reply, nil
}

// HistoryOf returns the figures of a minute or a step.
func HistoryOf(m *inspect.MinuteStats) HistoryRow {
	return HistoryRow{
		At:            m.At,
		Processed:     m.Processed,
		Failed:        m.Failed,
		WaitMean:      m.WaitMean,
		WaitDeviation: m.WaitDeviation,
		WaitP50:       m.Wait.Quantile(0.5),
		WaitP99:       m.Wait.Quantile(0.99),
		RunMean:       m.RunMean,
		RunDeviation:  m.RunDeviation,
		RunP50:        m.Run.Quantile(0.5),
		RunP99:        m.Run.Quantile(0.99),
	}
}

// QuarantineQuery bounds a list of records that can't be read.
type QuarantineQuery struct {
	Limit int `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of records, in order of shards"`
}

func (q *QuarantineQuery) about(a *Action) { a.Verb = verbViewPayload }

func (c *call) quarantine(q *QuarantineQuery) (*List[inspect.QuarantinedRecord], error) {
	reply, rows := newList[inspect.QuarantinedRecord](nil), view[inspect.QuarantinedRecord](c, 1)
	for r, err := range c.inspector.Quarantined(c.ctx, c.queue) {
		if err != nil {
			return nil, err
		}
		if len(reply.Items) >= q.Limit {
			break
		}
		reply.Items = append(reply.Items, rows.Row(&r))
	}
	return reply, nil
}

type nodeQueue struct {
	Queue         string         `json:"queue" class:"public" doc:"the queue"`
	Merge         core.MergeRule `json:"merge" class:"public" doc:"the merge rule that the server's program has; the queue's own may have been changed since"`
	MaxRetries    int            `json:"max_retries" class:"public" doc:"the retries of a job on that server"`
	MaxRecoveries int            `json:"max_recoveries" class:"public" doc:"the recoveries from which a job is on its last chance there"`
	MaxRunning    int            `json:"max_running" class:"public" doc:"the maximum number of batches of the queue that run at once on all servers; 0 is no limit"`
	MaxLanes      int            `json:"max_lanes" class:"public" doc:"the maximum number of lanes of the server that run this queue at once; 0 is no limit"`
	Parallel      int            `json:"parallel" class:"public" doc:"the maximum number of batches of one of its shards that run at once on the server; 0 is no limit"`
	BatchSize     int            `json:"batch_size" class:"public" doc:"the maximum number of jobs in a batch of this queue"`
	Rate          string         `json:"rate,omitempty" class:"public" doc:"the rate at which batches of the queue start over all servers; absent if there is none"`
	Shards        int            `json:"shards" class:"public" doc:"leases of the queue that the server holds"`
	Running       int            `json:"running" class:"public" doc:"jobs in handlers"`
	Busy          int            `json:"busy" class:"public" doc:"lanes that run a batch of the queue"`
	Claimed       int            `json:"claimed" class:"public" doc:"jobs that are claimed and have not started"`
}

type runningRow struct {
	Shard core.Shard `json:"shard" class:"queue" doc:"its shard"`
	ID    string     `json:"id" class:"id" doc:"the entity that it is about"`
	Since time.Time  `json:"since" class:"public" doc:"when the handler of the job started"`
}

// NodeRow is a server.
type NodeRow struct {
	Owner      string            `json:"owner" class:"public" doc:"its owner id, new with each start"`
	Name       string            `json:"name" class:"public" doc:"its name"`
	Host       string            `json:"host" class:"public" doc:"the host on which it runs"`
	PID        int               `json:"pid" class:"public" doc:"the id of its process"`
	Version    string            `json:"version,omitempty" class:"public" doc:"the version of its program"`
	State      inspect.NodeState `json:"state" class:"public" doc:"alive, draining or gone"`
	Lanes      int               `json:"lanes" class:"public" doc:"the maximum number of batches that it runs at once"`
	Busy       int               `json:"busy" class:"public" doc:"lanes that ran a batch at its last announcement"`
	Running    int               `json:"running" class:"public" doc:"jobs in handlers"`
	Claimed    int               `json:"claimed" class:"public" doc:"jobs that are claimed and have not started"`
	Shards     int               `json:"shards" class:"public" doc:"leases that it holds"`
	Memory     int64             `json:"memory,omitempty" class:"public" doc:"the memory of its process in bytes"`
	Goroutines int               `json:"goroutines,omitempty" class:"public" doc:"the number of its goroutines"`
	ClockAhead time.Duration     `json:"clock_ahead_seconds,omitempty" class:"public" doc:"how far its clock is ahead of the store's, negative if it is behind"`
	StartedAt  time.Time         `json:"started_at" class:"public" doc:"when it started"`
	ExpiresAt  time.Time         `json:"expires_at" class:"public" doc:"when it counts as gone unless it announces itself again"`
	Queues     []nodeQueue       `json:"queues" class:"public" doc:"its work for each queue"`
	Longest    []runningRow      `json:"longest" class:"public" doc:"the running jobs that began first"`
	LastChance *LastChanceRow    `json:"last_chance,omitempty" class:"public" doc:"the job on its last chance that it runs; others wait for its end"`
}

func (c *call) nodes(*NoQuery) (*List[NodeRow], error) {
	nodes, err := c.inspector.Nodes(c.ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]NodeRow, len(nodes))
	for at := range nodes {
		rows[at] = NodeOf(&nodes[at])
	}
	return newList(rowsOf(c, rows)), nil
}

// NodeOf returns the values of a server, not redacted.
func NodeOf(n *inspect.Node) NodeRow {
	s := &n.Status
	row := NodeRow{
		Owner:      n.Owner,
		Name:       n.Name,
		Host:       n.Host,
		PID:        n.PID,
		Version:    n.Version,
		State:      n.State,
		Lanes:      n.Lanes,
		Busy:       s.Busy,
		Running:    s.Running,
		Claimed:    s.Claimed,
		Shards:     s.Shards,
		Memory:     s.Memory,
		Goroutines: s.Goroutines,
		ClockAhead: s.ClockAhead,
		StartedAt:  n.StartedAt,
		ExpiresAt:  n.ExpiresAt,
		Queues:     []nodeQueue{},
		Longest:    []runningRow{},
		LastChance: lastChanceOf(s.LastChance.Shard, s.LastChance.ID),
	}

	for _, q := range s.Queues {
		row.Queues = append(row.Queues, nodeQueue{
			q.Queue,
			q.Merge,
			q.MaxRetries,
			q.MaxRecoveries,
			q.MaxRunning,
			q.MaxLanes,
			q.Parallel,
			q.BatchSize,
			q.Rate,
			q.Shards,
			q.Running,
			q.Busy,
			q.Claimed,
		})
	}
	for _, j := range s.Longest {
		row.Longest = append(row.Longest, runningRow{j.Shard, j.ID, j.Began.Time()})
	}
	return row
}

// CheckRow is the result of a check of the store's servers.
type CheckRow struct {
	Name   string              `json:"name" class:"public" doc:"the name of the check"`
	Server string              `json:"server,omitempty" class:"public" doc:"the address of the checked server; absent if the check is for all servers"`
	Status inspect.CheckStatus `json:"status" class:"public" doc:"ok, unknown, warn or fail"`
	Value  string              `json:"value" class:"error" doc:"the value that the check found"`
	Advice string              `json:"advice,omitempty" class:"public" doc:"what to do"`
}

// CheckOf returns the result of a check, not redacted.
func CheckOf(k *inspect.Check) CheckRow {
	return CheckRow{k.Name, k.Server, k.Status, k.Value, k.Advice}
}

func (c *call) checks(*NoQuery) (*List[CheckRow], error) {
	checks, err := c.inspector.Checks(c.ctx)
	if err != nil {
		return nil, err
	}
	rows := make([]CheckRow, len(checks))
	for at := range checks {
		rows[at] = CheckOf(&checks[at])
	}
	return newList(rowsOf(c, rows)), nil
}
