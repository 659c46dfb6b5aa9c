package skein

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// QueuedJob is a job that waits. Its payloads are read-only.
type QueuedJob struct {
	ID string
	// PerformAt is when the job may run.
	PerformAt time.Time
	// RetryCount is -1 until the job has failed, 0 after its first failure.
	RetryCount int
	// Recoveries is how often it has lost the process it ran in since it last
	// ended.
	Recoveries int
	// FirstPush is when the oldest push that merged into it came.
	FirstPush time.Time
	// LastError is the text of the last failure, empty if there was none.
	LastError string
	// Payloads are the first of its PayloadCount payloads, lowest score first, as
	// many as were asked for.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is the job's place in the list; of a Found, in that ByTime.
	Cursor Cursor
}

// ClaimedJob is a job that a lane has taken. Its payloads are read-only.
type ClaimedJob struct {
	// QueuedJob is the job as it was queued.
	QueuedJob
	Shard core.Shard
	// Owner and Node are the id and the name of the node that has it, and Lane
	// which of the node's lanes.
	Owner string
	Node  string
	Lane  int
	// Token is the fencing token of the lease it was claimed under.
	Token int64
	// Since is when it was claimed.
	Since time.Time
	// Begun reports that its handler was about to start when its node last said so,
	// which is known only of jobs with Recoveries.
	Begun bool
	// LeaseOver reports that its node is gone, or has lost the shard: it does not
	// run by right, and the shard's next owner puts it back.
	LeaseOver bool
	// Cancelled reports that Cancel has marked it.
	Cancelled bool
}

// DeadLetter is what the morgue holds for an id. Its payloads are read-only.
type DeadLetter struct {
	ID string
	// ChangedAt is when a payload last came in or was edited.
	ChangedAt time.Time
	// LastError is why the newest payload was buried.
	LastError string
	// Payloads are the first of its PayloadCount payloads, lowest score first, as
	// many as were asked for.
	Payloads     []core.Payload
	PayloadCount int
	// Cursor is the letter's place in the list; of a Found, in that ByTime.
	Cursor Cursor
}

// Found is all that a queue holds for an id. What is nil is not there: an id can
// be in all three places, with different payloads.
type Found struct {
	ID    string
	Shard core.Shard

	Queued     *QueuedJob
	Claimed    *ClaimedJob
	DeadLetter *DeadLetter
}

func (i *Inspector) queuedJob(v *ports.JobView, order SortBy) QueuedJob {
	job := QueuedJob{
		ID:           v.ID,
		PerformAt:    v.PerformAt.Time(),
		RetryCount:   v.RetryCount,
		Recoveries:   v.Recoveries,
		FirstPush:    v.FirstPush.Time(),
		LastError:    i.errorText(v.Error),
		Payloads:     v.Payloads,
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

func (i *Inspector) claimedJob(v *ports.ClaimView) ClaimedJob {
	job := ClaimedJob{
		QueuedJob: i.queuedJob(&ports.JobView{Job: v.Job, Count: v.Count}, ByTime),
		Shard:     v.Shard,
		Owner:     v.Owner,
		Node:      v.Node,
		Lane:      v.Lane,
		Token:     v.Receipt.Token,
		Since:     v.Since.Time(),
		Begun:     v.Begun,
		LeaseOver: v.LeaseOver,
		Cancelled: v.Cancelled,
	}
	job.Cursor.key = int64(v.Since)
	return job
}

func (i *Inspector) deadLetter(v *ports.DeadLetterView, order SortBy) DeadLetter {
	letter := DeadLetter{
		ID:           v.ID,
		ChangedAt:    v.ChangedAt.Time(),
		LastError:    i.errorText(v.Error),
		Payloads:     v.Payloads,
		PayloadCount: v.Count,
		Cursor:       Cursor{id: v.ID},
	}
	if order == ByTime {
		letter.Cursor.key = int64(v.ChangedAt)
	}
	return letter
}
