package service

import (
	"context"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
)

// Bounds of one call of an action. MaxNamed is the maximum number of named entries. An action on
// all that match ends with the first step after BulkSteps entries or after BulkTime.
const (
	MaxNamed  = 1000
	BulkSteps = 1000
	BulkTime  = 2 * time.Second
)

// groupSteps is BulkSteps for a dry run on a group, whose exact count is wanted.
const groupSteps = inspect.MaxErrorEntries

// BulkBody names the entries to act on: by ids, or by a match.
type BulkBody struct {
	IDs      []string   `json:"ids,omitempty" doc:"the ids, at most 1,000"`
	Match    *Match     `json:"match,omitempty" doc:"a filter instead of ids; {} means all entries"`
	Before   *time.Time `json:"before,omitempty" doc:"with match: only jobs first pushed, or dead letters last changed, before this time; by default the time of the first call"`
	Continue string     `json:"continue,omitempty" doc:"with match: the continue of the answer before"`
	DryRun   bool       `json:"dry_run,omitempty" doc:"with match: change nothing, and return what would change"`
}

func (b *BulkBody) isPreview() bool { return b.DryRun }

func (b *BulkBody) about(a *Action) { a.IDs, a.Bulk = b.IDs, b.Match != nil }

// check refuses a body that does not name entries in exactly one way. others is the number of other
// ways that the caller has found.
func (b *BulkBody) check(others int) error {
	named := others
	for _, given := range []bool{b.IDs != nil, b.Match != nil} {
		if given {
			named++
		}
	}

	switch {
	case named != 1:
		return ProblemBadRequest.With("give one of ids, match and, in the morgue, payloads")
	case b.Match == nil && (b.Before != nil || b.Continue != "" || b.DryRun):
		return ProblemBadRequest.With("before, continue and dry_run need match")
	case b.Before != nil && b.Before.IsZero():
		return ProblemBadRequest.With("before is in the year 1; omit it, or give the intended time")
	}
	return nil
}

// MorgueBody is a BulkBody that may name single payloads.
type MorgueBody struct {
	BulkBody
	Payloads []LetterPayloads `json:"payloads,omitempty" doc:"single payloads to act on instead of whole dead letters, of at most 1,000 ids"`
	Force    bool             `json:"force,omitempty" doc:"for revive: revive stale payloads too, which are not newer than what was done of their ids, and forget what was done of these ids"`
}

// LetterPayloads names payloads of a dead letter.
type LetterPayloads struct {
	ID       string   `json:"id" doc:"the id of the dead letter"`
	Payloads []Octets `json:"payloads" doc:"its payloads, byte for byte"`
}

func (b *MorgueBody) about(a *Action) {
	b.BulkBody.about(a)
	for _, letter := range b.Payloads {
		a.IDs = append(a.IDs, letter.ID)
	}
}

// BulkReply is the progress of an action.
type BulkReply struct {
	LookedAt  int                       `json:"looked_at" doc:"the number of entries read since the first call"`
	Handled   int                       `json:"handled" doc:"the number of entries changed, or that would be changed by a dry run"`
	Total     int                       `json:"total" doc:"the number of entries at the first call"`
	Later     int                       `json:"later,omitempty" doc:"how many of the newest hundred dead letters were skipped because their time is after before, such as imported ones with a future time; name their ids to act on them"`
	Stale     int                       `json:"stale,omitempty" doc:"how many dead letters a revive has left alone because a payload is not newer than what was done of the id; force revives them"`
	Continue  string                    `json:"continue,omitempty" doc:"the value of continue for the next call; absent if the action is complete, and in a dry run, which is a sample if looked_at is less than total"`
	Jobs      []Row[inspect.QueuedJob]  `json:"jobs,omitempty" doc:"in a dry run, some of the jobs that would change, without payloads"`
	Dead      []Row[inspect.DeadLetter] `json:"dead,omitempty" doc:"in a dry run, some of the dead letters that would change"`
	Unreached []string                  `json:"unreached,omitempty" doc:"shards that can't be reached now; the next call tries them again"`
}

// bulkReply returns the answer for a result. After an error it returns a problem that has the
// progress until then.
func (c *call) bulkReply(r *inspect.Result, err error) (*BulkReply, error) {
	reply := &BulkReply{
		LookedAt: r.Done,
		Handled:  r.Handled,
		Total:    r.Total,
		Later:    r.Later,
		Stale:    r.Stale,
		Continue: c.sealed(string(r.Checkpoint)),
		Jobs:     rowsOf(c, r.Jobs),
		Dead:     rowsOf(c, r.Samples),
	}

	unreached, err := c.partial(err)
	if err != nil {
		if r.Done == 0 && r.Handled == 0 && r.Checkpoint == "" {
			return nil, err
		}
		failed := *c.ProblemOf(c.queue, err)
		failed.Result = reply
		return nil, &failed
	}

	// Shards that can't be reached are no error: the next call tries them again.
	reply.Unreached = shardNames(unreached)
	return reply, nil
}

// checkNamed refuses a call that names no entry or too many.
func checkNamed(named int) error {
	if named == 0 || named > MaxNamed {
		return ProblemBadRequest.With("%d ids; name 1 to %d", named, MaxNamed)
	}
	return nil
}

// options returns the options of one call of an action on all that match.
func (b *BulkBody) options(c *call) (o inspect.BulkOptions, err error) {
	began, steps := time.Now(), BulkSteps
	if b.DryRun && b.Match.Group != "" {
		steps = groupSteps
	}
	o = inspect.BulkOptions{
		Prefix: string(b.Match.Prefix),
		Filter: b.Match.filter().Text(),
		Limit:  steps,
		DryRun: b.DryRun,
		Stop:   func(done int) bool { return done >= steps || time.Since(began) >= BulkTime },
	}

	if b.Before != nil {
		o.Before = *b.Before
	}
	if o.Group, err = c.group(string(b.Match.Group)); err != nil || b.Continue == "" {
		return o, err
	}

	text, err := c.opened(b.Continue, inspect.ErrInvalidCheckpoint)
	o.Continue, o.Before = inspect.Checkpoint(text), time.Time{} // it has the time of the first call
	return o, err
}

// matching returns the options of one call of an action on all that match, and the function that
// chooses entries, nil for all. of returns the error and the tags of an entry.
func matching[E any](
	c *call, b *BulkBody, of func(*E) (text string, tags []string),
) (chosen func(E) bool, o inspect.BulkOptions, err error) {
	if o, err = b.options(c); err != nil {
		return nil, o, err
	}
	if tag := string(b.Match.Tag); tag != "" {
		if err := checkTag(tag); err != nil {
			return nil, o, err
		}
	}

	if filter := b.Match.filter(); filter != (EntryFilter{}) {
		chosen = func(e E) bool { return filter.Holds(of(&e)) }
	}
	return chosen, o, nil
}

// KindOfJobs returns the jobs of a kind that match.
type KindOfJobs func(match func(inspect.QueuedJob) bool, o inspect.BulkOptions) inspect.JobSelection

// selectJobs returns the jobs that a body names, or those of a kind that match. payloads is the
// number of payloads of each job that a page of the action has.
func (c *call) selectJobs(b *BulkBody, kind KindOfJobs, payloads int) (inspect.JobSelection, error) {
	if err := b.check(0); err != nil {
		return inspect.JobSelection{}, err
	}
	if b.Match == nil {
		return inspect.JobIDs(b.IDs...), checkNamed(len(b.IDs))
	}

	match, o, err := matching(c, b, func(j *inspect.QueuedJob) (string, []string) { return j.LastError, j.Tags })
	if err != nil {
		return inspect.JobSelection{}, err
	}
	in, err := b.Match.state()
	if in != nil {
		all := match
		match = func(j inspect.QueuedJob) bool { return in(&j) && (all == nil || all(j)) }
		o.Filter = strings.TrimPrefix(o.Filter+", ", ", ") + "state is " + string(b.Match.State)
	}
	o.Payloads = payloads
	return kind(match, o), err
}

// onJobs acts on the jobs that a body names, or on those of a kind that match.
func (c *call) onJobs(
	b *BulkBody, kind KindOfJobs, act func(context.Context, string, inspect.JobSelection) (inspect.Result, error),
) (*BulkReply, error) {
	jobs, err := c.selectJobs(b, kind, noPayloads)
	if err != nil {
		return nil, err
	}
	result, err := act(c.ctx, c.queue, jobs)
	return c.bulkReply(&result, err)
}

// noPayloads reads no payload of the entries of an action, which chooses by ids, times and errors.
const noPayloads = -1

func (c *call) runNow(b *BulkBody) (*BulkReply, error) {
	return c.onJobs(b, inspect.AllJobs, c.inspector.RunNow)
}

func (c *call) release(b *BulkBody) (*BulkReply, error) {
	return c.onJobs(b, inspect.AllJobs, c.inspector.Release)
}

func (c *call) bury(b *BulkBody) (*BulkReply, error) {
	return c.onJobs(b, inspect.FailedJobs, c.inspector.Bury)
}

func (c *call) remove(b *BulkBody) (*BulkReply, error) {
	return c.onJobs(b, inspect.FailedJobs, c.inspector.Delete)
}

// FirstBody names the first payloads of queued jobs.
type FirstBody struct {
	First []FirstPayload `json:"first" doc:"the first payloads, of at most 1,000 ids, each id once"`
}

// FirstPayload names the first payload of a queued job.
type FirstPayload struct {
	ID      string `json:"id" doc:"the id of the job"`
	Payload Octets `json:"payload" doc:"its payload with the lowest score, byte for byte; a job that has another first payload is skipped; by the merge rule every, a repeated request takes the next payload if it has these bytes"`
}

func (b *FirstBody) about(a *Action) {
	for _, f := range b.First {
		a.IDs = append(a.IDs, f.ID)
	}
}

func (c *call) buryFirst(b *FirstBody) (*BulkReply, error) {
	return c.onFirst(b, c.inspector.Bury)
}

func (c *call) deleteFirst(b *FirstBody) (*BulkReply, error) {
	return c.onFirst(b, c.inspector.Delete)
}

func (c *call) onFirst(
	b *FirstBody, act func(context.Context, string, inspect.JobSelection) (inspect.Result, error),
) (*BulkReply, error) {
	if len(b.First) == 0 || len(b.First) > MaxNamed {
		return nil, ProblemBadRequest.With("first payloads of %d ids; name 1 to %d", len(b.First), MaxNamed)
	}

	first := make([]inspect.FirstPayload, len(b.First))
	for at := range b.First {
		data, err := octets(&b.First[at].Payload)
		if err != nil {
			return nil, err
		}
		first[at] = inspect.FirstPayload{ID: b.First[at].ID, Data: data}
	}

	result, err := act(c.ctx, c.queue, inspect.FirstPayloads(first...))
	return c.bulkReply(&result, err)
}

// selectDead returns the dead letters or payloads that a body names, or all dead letters that
// match.
func (c *call) selectDead(b *MorgueBody) (inspect.DeadLetterSelection, error) {
	single := 0
	if b.Payloads != nil {
		single = 1
	}
	if err := b.check(single); err != nil {
		return inspect.DeadLetterSelection{}, err
	}

	switch {
	case b.IDs != nil:
		return inspect.DeadIDs(b.IDs...), checkNamed(len(b.IDs))
	case b.Payloads != nil:
		return deadPayloads(b.Payloads)
	}
	return c.allDead(&b.BulkBody, noPayloads)
}

// allDead returns all dead letters that match. payloads is as for selectJobs.
func (c *call) allDead(b *BulkBody, payloads int) (inspect.DeadLetterSelection, error) {
	if b.Match.State != "" {
		return inspect.DeadLetterSelection{}, ProblemBadRequest.With("dead letters have no state; leave it out")
	}
	match, o, err := matching(c, b, func(d *inspect.DeadLetter) (string, []string) { return d.LastError, d.Tags })
	o.Payloads = payloads
	return inspect.AllDead(match, o), err
}

func deadPayloads(letters []LetterPayloads) (inspect.DeadLetterSelection, error) {
	if len(letters) == 0 || len(letters) > MaxNamed {
		return inspect.DeadLetterSelection{},
			ProblemBadRequest.With("payloads of %d ids; name 1 to %d", len(letters), MaxNamed)
	}

	refs := make([]inspect.DeadLetterPayloads, len(letters))
	for at, letter := range letters {
		refs[at].ID, refs[at].Payloads = letter.ID, [][]byte{}
		for _, p := range letter.Payloads {
			data, err := octets(&p)
			if err != nil {
				return inspect.DeadLetterSelection{}, err
			}
			refs[at].Payloads = append(refs[at].Payloads, data)
		}
	}
	return inspect.DeadPayloads(refs...), nil
}

func (c *call) onDead(
	b *MorgueBody, act func(context.Context, string, inspect.DeadLetterSelection) (inspect.Result, error),
) (*BulkReply, error) {
	dead, err := c.selectDead(b)
	if err != nil {
		return nil, err
	}
	if b.Force {
		dead = dead.Force()
	}
	result, err := act(c.ctx, c.queue, dead)
	return c.bulkReply(&result, err)
}

func (c *call) revive(b *MorgueBody) (*BulkReply, error) { return c.onDead(b, c.inspector.Revive) }
func (c *call) purge(b *MorgueBody) (*BulkReply, error)  { return c.onDead(b, c.inspector.Purge) }
