package inspect

import (
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// The fields of the types that operators see are declared once, here and in the other files of this
// package: their tags have the name in JSON and in columns, the description, and the class of
// redaction. Package internal/shown makes rows of the API, the command and the pages from them, and
// describes the tags.

// QueuedJob is a queued job. Its payloads are read-only.
type QueuedJob struct {
	ID        string    `json:"id" class:"id" doc:"the entity that it is about"`
	PerformAt time.Time `json:"perform_at" class:"public" doc:"when the job may run"`
	// Retries is the number of failures of the job since it was last fresh. It is 0 at first, and
	// again after its first payload was done or buried, after a release or a revival, and after
	// skein.Await.
	Retries int `json:"retries" class:"public" doc:"the number of its failures"`
	// Held is true if the job is held, because it used up its retries or recoveries in a queue with
	// skein.Hold. It does not run before [Inspector.Release], [Inspector.RunNow], or a Bury or
	// Delete of its [FirstPayloads] is called for it. While it is held, its PerformAt is the latest
	// time that a store can hold, in the year 2255.
	Held bool `json:"held,omitempty" class:"public" wide:"true" doc:"whether it is held: its retries are used up, and it never runs until it is released"`
	// Recoveries is the number of times that the job lost its process and that count, since the job
	// was last done, failed, snoozed or buried (docs/rules.md 4).
	Recoveries int       `json:"recoveries" class:"public" wide:"true" doc:"the number of times that its process was lost since its last settlement"`
	FirstPush  time.Time `json:"first_push" class:"public" wide:"true" doc:"the time of the oldest push that merged into it"`
	// LastFailure is zero if the job has not failed, and after skein.Await or a revival.
	LastFailure
	// Tags are the tags of the pushes that merged into the job; see skein.Tags. nil means no tags.
	Tags []string `json:"tags,omitempty" class:"tags" wide:"true" doc:"its tags, in the order of their bytes; absent if ids are redacted"`
	// Slot is the key of the rate whose slot PerformAt is: the job was put back until then, since the
	// rate of its key allowed no earlier start. No push changes the PerformAt of such a job. Slot is
	// empty if the job does not wait for a slot.
	Slot string `json:"slot,omitempty" class:"id" wide:"true" doc:"the key of the rate, such as a tenant, whose slot perform_at is; absent if it waits for no slot"`
	// Payloads are the first of its PayloadCount payloads, lowest score first, at most
	// ListOptions.Payloads. [Inspector.Payloads] lists all of them.
	PayloadCount int            `json:"payload_count" class:"public" doc:"the number of its payloads"`
	Payloads     []core.Payload `json:"payloads,omitempty" class:"payload" wide:"true" doc:"its first payloads, if the request has payloads"`
	// Cursor is the job's position in the list. In a [Found] it is the position in the list
	// [ByTime].
	Cursor Cursor `json:"cursor,omitempty" class:"sealed" wide:"true" doc:"its place in the list; after this cursor the next row begins"`
}

// LastFailure is the last failure of a job, or the reason of a burial, and those before it.
type LastFailure struct {
	LastError string `json:"last_error,omitempty" class:"error" doc:"the text of the last failure"`
	// LastFailedAt is by the store's clock, as the server estimated it. It is zero if it is unknown,
	// as for a burial by an operator.
	LastFailedAt time.Time `json:"last_failed_at,omitzero" class:"public" wide:"true" doc:"when that was; absent if it is unknown"`
	// LastFailedOn is empty if no server ran the job then.
	LastFailedOn string `json:"last_failed_on,omitempty" class:"public" wide:"true" doc:"the name of the server that ran the job then"`
	// Failures are the last failures, at most five, the newest first. The newest is LastError,
	// LastFailedAt and LastFailedOn. With [ListOptions.ErrorBytes] and in an [ErrorEntry] it is the
	// only one.
	Failures []Failure `json:"failures,omitempty" class:"public" wide:"true" doc:"its last failures, at most five, the newest first; only the newest with error_bytes and in errors"`
}

// Failure is a failure of a job.
type Failure struct {
	// At and On are as LastFailedAt and LastFailedOn of a [LastFailure].
	At time.Time `json:"at,omitzero" class:"public" doc:"when it was; absent if it is unknown"`
	On string    `json:"on,omitempty" class:"public" doc:"the name of the server that ran the job then"`
	// Text of a failure before the newest may be truncated or empty, since the texts of all failures
	// have at most 4 KiB together.
	Text string `json:"text,omitempty" class:"error" doc:"the text of the error; of an older failure it may be truncated or absent"`
}

// ClaimedJob is a job that a server has claimed: it runs, or will run soon. Its payloads are
// read-only.
type ClaimedJob struct {
	// QueuedJob is the job as it was queued.
	QueuedJob
	Shard core.Shard `json:"shard" class:"queue" doc:"its shard, as orders/3"`
	Owner string     `json:"owner" class:"public" wide:"true" doc:"the owner id of the server that claimed it"`
	Node  string     `json:"node" class:"public" doc:"the name of that server"`
	Token int64      `json:"token" class:"public" wide:"true" doc:"the fencing token of the claim's lease"`
	Since time.Time  `json:"since" class:"public" doc:"when it was claimed"`
	// Begun is true if its server has announced that the job's handler starts. Servers announce
	// that only for jobs with Recoveries.
	Begun bool `json:"begun" class:"public" wide:"true" doc:"for recovered jobs: whether the handler is known to have started"`
	// LeaseOver is true if its server no longer holds the lease under which the job was claimed.
	// The shard's next owner requeues the job.
	LeaseOver bool `json:"lease_over" class:"public" doc:"whether its server is gone or has lost the shard"`
	// LeaseUntil is when that lease ends unless the server renews it. A server renews a lease after
	// a third of its duration. LeaseUntil is zero if the lease is over.
	LeaseUntil time.Time `json:"lease_until,omitzero" class:"public" wide:"true" doc:"when the claim's lease ends unless it is renewed"`
	// Cancelled is true if [Inspector.Cancel] was called for the job. Drop is true if the job is
	// dropped when it ends, and false if it is requeued.
	Cancelled bool `json:"cancelled" class:"public" doc:"whether a cancel was requested"`
	Drop      bool `json:"drop" class:"public" wide:"true" doc:"whether the cancel removes the job instead of putting it back"`
}

// DeadLetter is the buried payloads of one id, in the morgue. They are read-only.
type DeadLetter struct {
	ID        string    `json:"id" class:"id" doc:"the entity that it is about"`
	ChangedAt time.Time `json:"changed_at" class:"public" doc:"when a payload was last added or edited"`
	// LastFailure is that for which the newest payload was buried. The older Failures are those of its
	// job.
	LastFailure
	// Group is the group of LastError; see [Inspector.Groups].
	Group string `json:"group" class:"group" wide:"true" doc:"the group of that error, for lists and actions: a key, encrypted if errors are redacted"`
	// Tags are nil if the buried jobs had no tags.
	Tags []string `json:"tags,omitempty" class:"tags" wide:"true" doc:"the tags of the buried jobs, in the order of their bytes; absent if ids are redacted"`
	// Payloads are the first of its PayloadCount payloads, lowest score first, at most
	// ListOptions.Payloads. [Inspector.Payloads] lists all of them.
	PayloadCount int            `json:"payload_count" class:"public" doc:"the number of its payloads"`
	Payloads     []core.Payload `json:"payloads,omitempty" class:"payload" wide:"true" doc:"its first payloads, if the request has payloads"`
	// Cursor is the dead letter's position in the list. In a [Found] it is the position in the list
	// [ByTime].
	Cursor Cursor `json:"cursor,omitempty" class:"sealed" wide:"true" doc:"its place in the list; after this cursor the next row begins"`
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
		LastFailure:  w.lastFailure(v.Failures),
		Tags:         v.Tags.List(),
		Slot:         v.Slot,
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
		LastFailure:  w.lastFailure(v.Failures),
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

// lastFailure returns stored failures as they are shown.
func (w viewer) lastFailure(stored core.Failures) (shown LastFailure) {
	for _, f := range stored {
		own := Failure{On: f.Node, Text: f.Text}
		if f.At > 0 {
			own.At = f.At.Time()
		}
		if f.Text != "" && w.decodeError != nil {
			own.Text = w.decodeError(f.Text)
		}
		shown.Failures = append(shown.Failures, own)
	}

	if len(shown.Failures) > 0 {
		newest := &shown.Failures[0]
		shown.LastError, shown.LastFailedAt, shown.LastFailedOn = newest.Text, newest.At, newest.On
	}
	return shown
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
