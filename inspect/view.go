package inspect

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// QueuedJob is a queued job. Its payloads are read-only.
type QueuedJob struct {
	ID string
	// PerformAt is when the job may run.
	PerformAt time.Time
	// Retries is the number of failures of the job since it was last fresh. It is 0 at first, and
	// again after its first payload was done or buried, after a release or a revival, and after
	// skein.Await.
	Retries int
	// Held is true if the job is held, because it used up its retries or recoveries in a queue with
	// skein.Hold. It does not run before [Inspector.Release], [Inspector.RunNow], or a Bury or
	// Delete of its [FirstPayloads] is called for it. While it is held, its PerformAt is the latest
	// time that a store can hold, in the year 2255.
	Held bool
	// Recoveries is the number of times that the job lost its process and that count, since the job
	// was last done, failed, snoozed or buried (docs/rules.md 4).
	Recoveries int
	// FirstPush is the time of the oldest push that merged into the job.
	FirstPush time.Time
	// LastError is the text of the last failure. It is empty if the job has not failed, and after
	// skein.Await or a revival.
	LastError string
	// Tags are the tags of the pushes that merged into the job, in the order of their bytes; see
	// skein.Tags. nil means no tags.
	Tags []string
	// Payloads are the first of its PayloadCount payloads, lowest score first, at most
	// ListOptions.Payloads. [Inspector.Payloads] lists all of them.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is the job's position in the list. In a [Found] it is the position in the list
	// [ByTime].
	Cursor Cursor
}

// ClaimedJob is a job that a server has claimed: it runs, or will run soon. Its payloads are
// read-only.
type ClaimedJob struct {
	// QueuedJob is the job as it was queued.
	QueuedJob
	Shard core.Shard
	// Owner and Node are the id and the name of the server that has claimed the job.
	Owner string
	Node  string
	// Token is the fencing token of the lease under which the job was claimed.
	Token int64
	// Since is when the job was claimed.
	Since time.Time
	// Begun is true if its server has announced that the job's handler starts. Servers announce
	// that only for jobs with Recoveries.
	Begun bool
	// LeaseOver is true if its server no longer holds the lease under which the job was claimed.
	// The shard's next owner requeues the job.
	LeaseOver bool
	// LeaseUntil is when that lease ends unless the server renews it. A server renews a lease after
	// a third of its duration. LeaseUntil is zero if the lease is over.
	LeaseUntil time.Time
	// Cancelled is true if [Inspector.Cancel] was called for the job. Drop is true if the job is
	// dropped when it ends, and false if it is requeued.
	Cancelled bool
	Drop      bool
}

// DeadLetter is the buried payloads of one id, in the morgue. They are read-only.
type DeadLetter struct {
	ID string
	// ChangedAt is when a payload was last added or edited.
	ChangedAt time.Time
	// LastError is the error for which the newest payload was buried. Group is the group of that
	// error; see [Inspector.Groups].
	LastError string
	Group     string
	// Tags are the tags of the jobs that were buried, in the order of their bytes. nil means no
	// tags.
	Tags []string
	// Payloads are the first of its PayloadCount payloads, lowest score first, at most
	// ListOptions.Payloads. [Inspector.Payloads] lists all of them.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is the dead letter's position in the list. In a [Found] it is the position in the list
	// [ByTime].
	Cursor Cursor
}

// viewer makes views of the entries that a store returns.
type viewer struct {
	// decodeError is Options.DecodeError.
	decodeError func(stored string) string
	// merge is the rule of the queue that has the entries; see viewsOf.
	merge core.MergeRule
}

// of returns the viewer for a queue with a merge rule.
func (w viewer) of(merge core.MergeRule) viewer {
	w.merge = merge
	return w
}

func (w viewer) queuedJob(v *ports.JobView, order SortBy) QueuedJob {
	job := QueuedJob{
		ID:           v.ID,
		PerformAt:    v.PerformAt.Time(),
		Retries:      v.RetryCount + 1,
		Held:         v.Held(),
		Recoveries:   v.Recoveries,
		FirstPush:    v.FirstPush.Time(),
		LastError:    w.errorText(v.Error),
		Tags:         v.Tags.List(),
		Payloads:     w.merge.PushedAll(v.Payloads),
		PayloadCount: v.Count,
		Cursor:       Cursor{id: v.ID},
	}

	switch order {
	case ByTime, RetryingByTime:
		job.Cursor.key = int64(v.PerformAt)
	case RetryingByCount:
		job.Cursor.key = int64(v.RetryCount)
	}
	return job
}

func (w viewer) claimedJob(v *ports.ClaimView) ClaimedJob {
	job := ClaimedJob{
		QueuedJob: w.queuedJob(&ports.JobView{Job: v.Job, Count: v.Count}, ByTime),
		Shard:     v.Shard,
		Owner:     v.Owner,
		Node:      v.Node,
		Token:     v.Receipt.Token,
		Since:     v.Since.Time(),
		Begun:     v.Begun,
		LeaseOver: v.LeaseOver,
		Cancelled: v.Cancelled,
		Drop:      v.Drop,
	}

	if !v.LeaseOver {
		job.LeaseUntil = v.LeaseUntil.Time()
	}

	job.Cursor.key = int64(v.Since)
	return job
}

func (w viewer) deadLetter(v *ports.DeadLetterView, order SortBy) DeadLetter {
	d := DeadLetter{
		ID:           v.ID,
		ChangedAt:    v.ChangedAt.Time(),
		LastError:    w.errorText(v.Error),
		Group:        v.Group,
		Tags:         v.Tags.List(),
		Payloads:     w.merge.PushedAll(v.Payloads),
		PayloadCount: v.Count,
		Cursor:       Cursor{id: v.ID},
	}

	if order == ByTime {
		d.Cursor.key = int64(v.ChangedAt)
	}
	return d
}

// errorText returns a stored error as it is shown.
func (w viewer) errorText(stored string) string {
	if stored == "" || w.decodeError == nil {
		return stored
	}
	return w.decodeError(stored)
}

// convert returns the results of f for the elements of a list. It returns nil for nil.
func convert[P, V any](list []P, f func(*P) V) []V {
	if list == nil {
		return nil
	}

	views := make([]V, len(list))
	for at := range list {
		views[at] = f(&list[at])
	}
	return views
}
