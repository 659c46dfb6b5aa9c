package main

import (
	"encoding/base64"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/inspect"
)

// The columns of everything that is shown. They are named like the fields of the HTTP API.

var countColumns = columns[inspect.Counts]{
	{"length", false, func(c *inspect.Counts) any { return c.Length() }},
	{"morgue_length", false, func(c *inspect.Counts) any { return c.Dead }},
	{"waiting", false, func(c *inspect.Counts) any { return c.Waiting() }},
	{"lag", false, func(c *inspect.Counts) any { return c.Lag }},
	{"fresh", true, func(c *inspect.Counts) any { return c.Fresh }},
	{"retrying", false, func(c *inspect.Counts) any { return c.Retrying }},
	{"held", true, func(c *inspect.Counts) any { return c.Held }},
	{"claimed", false, func(c *inspect.Counts) any { return c.Claimed }},
	{"orphaned", true, func(c *inspect.Counts) any { return c.Orphaned }},
	{"quarantined", true, func(c *inspect.Counts) any { return c.Quarantined }},
	{"processed", false, func(c *inspect.Counts) any { return c.Processed }},
	{"failed", false, func(c *inspect.Counts) any { return c.Failed }},
	{"superseded", true, func(c *inspect.Counts) any { return c.Superseded }},
	{"oldest", true, func(c *inspect.Counts) any { return c.Oldest }},
}

var queueColumns = columns[inspect.Queue]{
	{"name", false, func(q *inspect.Queue) any { return q.Name }},
	{"shards", false, func(q *inspect.Queue) any { return q.Shards }},
	{"index_ids", false, func(q *inspect.Queue) any { return q.IndexIDs }},
	{"merge", true, func(q *inspect.Queue) any { return q.Merge.String() }},
	{"paused", false, func(q *inspect.Queue) any { return q.Paused }},
}

var shardColumns = append(append(columns[inspect.ShardStats]{
	{"shard", false, func(s *inspect.ShardStats) any { return s.Shard.String() }},
	{"index", true, func(s *inspect.ShardStats) any { return s.Shard.Index }},
}, within(countColumns, func(s *inspect.ShardStats) *inspect.Counts { return &s.Counts })...), columns[inspect.ShardStats]{
	{"owner", false, func(s *inspect.ShardStats) any { return s.Owner }},
	{"token", true, func(s *inspect.ShardStats) any { return s.Token }},
	{"expires_at", false, func(s *inspect.ShardStats) any { return s.ExpiresAt }},
}...)

var jobColumns = columns[inspect.QueuedJob]{
	{"id", false, func(j *inspect.QueuedJob) any { return j.ID }},
	{"perform_at", false, func(j *inspect.QueuedJob) any { return j.PerformAt }},
	{"retries", false, func(j *inspect.QueuedJob) any { return j.Retries }},
	{"held", true, func(j *inspect.QueuedJob) any { return j.Held }},
	{"recoveries", true, func(j *inspect.QueuedJob) any { return j.Recoveries }},
	{"first_push", true, func(j *inspect.QueuedJob) any { return j.FirstPush }},
	{"payload_count", false, func(j *inspect.QueuedJob) any { return j.PayloadCount }},
	{"last_error", false, func(j *inspect.QueuedJob) any { return j.LastError }},
	{"payloads", true, func(j *inspect.QueuedJob) any { return payloadRows(j.Payloads) }},
	{"cursor", true, func(j *inspect.QueuedJob) any { return j.Cursor.String() }},
}

var claimedColumns = append(within(jobColumns, func(j *inspect.ClaimedJob) *inspect.QueuedJob { return &j.QueuedJob }), columns[inspect.ClaimedJob]{
	{"shard", false, func(j *inspect.ClaimedJob) any { return j.Shard.String() }},
	{"owner", true, func(j *inspect.ClaimedJob) any { return j.Owner }},
	{"node", false, func(j *inspect.ClaimedJob) any { return j.Node }},
	{"token", true, func(j *inspect.ClaimedJob) any { return j.Token }},
	{"since", false, func(j *inspect.ClaimedJob) any { return j.Since }},
	{"begun", true, func(j *inspect.ClaimedJob) any { return j.Begun }},
	{"lease_over", false, func(j *inspect.ClaimedJob) any { return j.LeaseOver }},
	{"lease_until", true, func(j *inspect.ClaimedJob) any { return j.LeaseUntil }},
	{"cancelled", false, func(j *inspect.ClaimedJob) any { return j.Cancelled }},
	{"drop", true, func(j *inspect.ClaimedJob) any { return j.Drop }},
}...)

var deadColumns = columns[inspect.DeadLetter]{
	{"id", false, func(d *inspect.DeadLetter) any { return d.ID }},
	{"changed_at", false, func(d *inspect.DeadLetter) any { return d.ChangedAt }},
	{"payload_count", false, func(d *inspect.DeadLetter) any { return d.PayloadCount }},
	{"last_error", false, func(d *inspect.DeadLetter) any { return d.LastError }},
	{"group", true, func(d *inspect.DeadLetter) any { return d.Group }},
	{"payloads", true, func(d *inspect.DeadLetter) any { return payloadRows(d.Payloads) }},
	{"cursor", true, func(d *inspect.DeadLetter) any { return d.Cursor.String() }},
}

// payloadColumns are the columns of a payload in a list. Bytes that are not text are in Base64.
var payloadColumns = columns[inspect.StoredPayload]{
	{"score", false, func(p *inspect.StoredPayload) any { return p.Score }},
	{"data", false, func(p *inspect.StoredPayload) any { return textOf(p.Data) }},
	{"data_base64", false, func(p *inspect.StoredPayload) any { return base64Of(p.Data) }},
	{"meta", true, func(p *inspect.StoredPayload) any { return textOf(p.Meta) }},
	{"meta_base64", true, func(p *inspect.StoredPayload) any { return base64Of(p.Meta) }},
	{"cursor", true, func(p *inspect.StoredPayload) any { return p.Cursor.String() }},
}

// textOf returns bytes as text. It returns nil if data is nil or not UTF-8.
func textOf(data []byte) any {
	if data == nil || !utf8.Valid(data) {
		return nil
	}
	return string(data)
}

// base64Of returns bytes that are not UTF-8 in Base64, and nil for others.
func base64Of(data []byte) any {
	if utf8.Valid(data) {
		return nil
	}
	return base64.StdEncoding.EncodeToString(data)
}

// foundIn is everything that a queue holds for an id.
type foundIn struct {
	queue string
	inspect.Found
}

var foundColumns = columns[foundIn]{
	{"queue", false, func(f *foundIn) any { return f.queue }},
	{"id", false, func(f *foundIn) any { return f.ID }},
	{"shard", false, func(f *foundIn) any { return f.Shard.String() }},
	{"queued", false, func(f *foundIn) any { return jobColumns.row(f.Queued) }},
	{"claimed", false, func(f *foundIn) any { return claimedColumns.row(f.Claimed) }},
	{"dead", false, func(f *foundIn) any { return deadColumns.row(f.DeadLetter) }},
	{"damaged", true, func(f *foundIn) any { return f.Damaged }},
}

// verdict is the result of why.
type verdict struct {
	inspect.Verdict
	found foundIn
}

// announced returns a number that servers of the queue announce, or nil for unknown if no server
// announces the queue.
func (v *verdict) announced(n int) any {
	if len(v.Servers)+len(v.Drains) == 0 {
		return nil
	}
	return n
}

var verdictColumns = columns[verdict]{
	{"reason", false, func(v *verdict) any { return v.Reason.String() }},
	{"text", false, func(v *verdict) any { return v.Text }},
	{"until", false, func(v *verdict) any { return v.Until }},
	{"ahead", false, func(v *verdict) any { return v.Ahead }},
	{"alone", false, func(v *verdict) any { return v.Alone }},
	{"running_since", false, func(v *verdict) any { return v.RunningSince }},
	{"max_retries", true, func(v *verdict) any { return v.announced(v.MaxRetries) }},
	{"max_running", true, func(v *verdict) any { return v.announced(v.MaxRunning) }},
	{"busy", true, func(v *verdict) any { return v.announced(v.Busy) }},
	{"servers", false, func(v *verdict) any { return v.Servers }},
	{"servers_unknown", true, func(v *verdict) any { return v.ServersUnknown }},
	{"found", false, func(v *verdict) any { return foundColumns.row(&v.found) }},
	{"as_of", true, func(v *verdict) any { return v.Now }},
}

var nodeColumns = columns[inspect.Node]{
	{"name", false, func(n *inspect.Node) any { return n.Name }},
	{"state", false, func(n *inspect.Node) any { return n.State.String() }},
	{"owner", true, func(n *inspect.Node) any { return n.Owner }},
	{"host", false, func(n *inspect.Node) any { return n.Host }},
	{"pid", false, func(n *inspect.Node) any { return n.PID }},
	{"version", false, func(n *inspect.Node) any { return n.Version }},
	{"lanes", false, func(n *inspect.Node) any { return n.Lanes }},
	{"busy", false, func(n *inspect.Node) any { return n.Status.Busy }},
	{"running", false, func(n *inspect.Node) any { return n.Status.Running }},
	{"claimed", true, func(n *inspect.Node) any { return n.Status.Claimed }},
	{"shards", false, func(n *inspect.Node) any { return n.Status.Shards }},
	{"memory", true, func(n *inspect.Node) any { return n.Status.Memory }},
	{"goroutines", true, func(n *inspect.Node) any { return n.Status.Goroutines }},
	{"started_at", true, func(n *inspect.Node) any { return n.StartedAt }},
	{"expires_at", true, func(n *inspect.Node) any { return n.ExpiresAt }},
	{"queues", false, func(n *inspect.Node) any { return n.Queues }},
	{"longest", true, func(n *inspect.Node) any { return longestRows(n) }},
}

// runningJob is one of the jobs that a server has run longest.
type runningJob struct {
	shard, id string
	since     time.Time
}

var runningColumns = columns[runningJob]{
	{"shard", false, func(j *runningJob) any { return j.shard }},
	{"id", false, func(j *runningJob) any { return j.id }},
	{"since", false, func(j *runningJob) any { return j.since }},
}

func longestRows(n *inspect.Node) []*object {
	rows := []*object{}
	for _, j := range n.Status.Longest {
		rows = append(rows, runningColumns.row(&runningJob{j.Shard.String(), j.ID, j.Began.Time()}))
	}
	return rows
}
