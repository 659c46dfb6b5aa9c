package service

import (
	"fmt"
	"math"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// ScheduleBody selects schedules: those of an id, those of a name, or with both the one.
type ScheduleBody struct {
	ID   Given `json:"id,omitempty" doc:"the id; without it the schedules of all ids with the name"`
	Name Given `json:"name,omitempty" doc:"the name; without it all schedules of the id"`
}

func (b *ScheduleBody) about(a *Action) { a.IDs, a.Bulk = givenID(string(b.ID)), b.ID == "" }

func (b *ScheduleBody) selection() inspect.ScheduleSelection {
	return inspect.ScheduleSelection{ID: string(b.ID), Name: string(b.Name)}
}

// ScheduleResult is the result of an action on schedules.
type ScheduleResult struct {
	Changed   int      `json:"changed" doc:"the number of schedules that were changed; one that is as wanted already does not count"`
	Unreached []string `json:"unreached,omitempty" doc:"shards that can't be reached now, whose schedules are left as they are"`
}

// scheduleResult returns the answer of an action on schedules.
func (c *call) scheduleResult(changed int, err error) (*ScheduleResult, error) {
	unreached, err := c.partial(err)
	if err != nil {
		return nil, c.withoutIDsIn(err)
	}
	return &ScheduleResult{changed, shardNames(unreached)}, nil
}

// withoutIDsIn returns the problem of an error, without the ids of schedules that the caller has
// not named if ids are redacted.
func (c *call) withoutIDsIn(err error) error {
	p := *c.ProblemOf(c.queue, err)
	p.Detail = c.withoutIDs(p.Detail)
	return &p
}

// SchedulePauseBody selects schedules to pause.
type SchedulePauseBody struct {
	ScheduleBody
	Note string `json:"note,omitempty" doc:"the reason, for people; at most 1 KiB"`
}

func (c *call) pauseSchedules(b *SchedulePauseBody) (*ScheduleResult, error) {
	return c.scheduleResult(c.inspector.PauseSchedules(c.ctx, c.queue, b.selection(), b.Note))
}

func (c *call) resumeSchedules(b *ScheduleBody) (*ScheduleResult, error) {
	return c.scheduleResult(c.inspector.ResumeSchedules(c.ctx, c.queue, b.selection()))
}

func (c *call) removeSchedules(b *ScheduleBody) (*ScheduleResult, error) {
	return c.scheduleResult(c.inspector.RemoveSchedules(c.ctx, c.queue, b.selection()))
}

func (c *call) runSchedules(b *ScheduleBody) (*ScheduleResult, error) {
	return c.scheduleResult(c.inspector.RunSchedules(c.ctx, c.queue, b.selection()))
}

// ScheduleEditBody selects schedules and names what to change of them.
type ScheduleEditBody struct {
	ScheduleBody
	Cron    *string    `json:"cron,omitempty" doc:"another cron expression; without zone each schedule keeps its own zone"`
	Zone    *string    `json:"zone,omitempty" doc:"another time zone, such as Europe/Berlin; without cron each schedule keeps its own expression"`
	Every   *float64   `json:"every_seconds,omitempty" doc:"another interval in seconds, instead of cron and zone"`
	From    *time.Time `json:"from,omitempty" doc:"a tick of that interval; by default 1 January 1970 UTC"`
	Payload *Octets    `json:"payload,omitempty" doc:"another payload"`
	Jitter  *float64   `json:"jitter_seconds,omitempty" doc:"another jitter in seconds"`
	Catchup *Catchup   `json:"catchup,omitempty" doc:"another catch-up, as a whole"`
	Skip    *bool      `json:"skip,omitempty" doc:"whether to drop ticks while the id has a job"`
}

// Catchup decides which of several due ticks are pushed.
type Catchup struct {
	Most   int     `json:"most" doc:"how many, the newest; more than 1 needs a queue that merges by every"`
	Within float64 `json:"within_seconds,omitempty" doc:"the age in seconds up to which a tick is pushed; 0 is any age"`
}

func (c *call) editSchedules(b *ScheduleEditBody) (*ScheduleResult, error) {
	edit, err := b.edit()
	if err != nil {
		return nil, err
	}
	return c.scheduleResult(c.inspector.EditSchedules(c.ctx, c.queue, b.selection(), edit))
}

// edit returns the change that the body names.
func (b *ScheduleEditBody) edit() (edit inspect.ScheduleEdit, err error) {
	edit = inspect.ScheduleEdit{Cron: b.Cron, Zone: b.Zone, From: b.From, Skip: b.Skip}
	if edit.Every, err = secondsOf("every_seconds", b.Every); err != nil {
		return edit, err
	}

	if b.Payload != nil {
		data, err := octets(b.Payload)
		if err != nil {
			return edit, err
		}
		edit.Payload = &data
	}

	if edit.Jitter, err = secondsOf("jitter_seconds", b.Jitter); err != nil {
		return edit, err
	}

	if b.Catchup != nil {
		within, err := seconds("within_seconds", b.Catchup.Within)
		if err != nil {
			return edit, err
		}
		edit.CatchupMost, edit.CatchupWithin = &b.Catchup.Most, &within
	}
	return edit, nil
}

// secondsOf returns a number of seconds as a duration, or nil for nil.
func secondsOf(name string, n *float64) (*time.Duration, error) {
	if n == nil {
		return nil, nil
	}
	d, err := seconds(name, *n)
	return &d, err
}

// seconds returns a number of seconds as a duration, in whole microseconds.
func seconds(name string, n float64) (time.Duration, error) {
	const most = float64(math.MaxInt64 / int64(time.Second))
	if !(n >= 0 && n <= most) {
		return 0, ProblemBadRequest.With("%s is %v; give a number of seconds from 0", name, n)
	}
	return time.Duration(math.Round(n*1e6)) * time.Microsecond, nil
}

// ScheduleBackfillBody names a schedule and a range of its ticks.
type ScheduleBackfillBody struct {
	ID     string    `json:"id" doc:"the id of the schedule"`
	Name   string    `json:"name" doc:"its name"`
	From   time.Time `json:"from" doc:"the begin of the range, inclusive"`
	To     time.Time `json:"to" doc:"the end of the range, exclusive; not in the future"`
	DryRun bool      `json:"dry_run,omitempty" doc:"push nothing, and return the ticks"`
}

func (b *ScheduleBackfillBody) about(a *Action) { a.IDs = givenID(b.ID) }

func (b *ScheduleBackfillBody) isPreview() bool { return b.DryRun }

// BackfillReply has the ticks of a backfill.
type BackfillReply struct {
	Ticks []NextTick `json:"ticks" doc:"the ticks whose payload was pushed, or would be by a dry run; at most 1,000"`
}

func (c *call) backfillSchedule(b *ScheduleBackfillBody) (*BackfillReply, error) {
	ticks, err := c.inspector.Backfill(c.ctx, c.queue, b.ID, b.Name, b.From, b.To, b.DryRun)
	if err != nil {
		return nil, err
	}
	reply := &BackfillReply{Ticks: []NextTick{}}
	for _, tick := range ticks {
		reply.Ticks = append(reply.Ticks, nextTick(tick))
	}
	return reply, nil
}

// MergedTicks returns a sentence that states how many payloads the ticks of a backfill make, or ""
// if they make one each. fixedScore is whether the schedule has a score of its own.
func MergedTicks(queue string, rule core.MergeRule, fixedScore bool, ticks int) string {
	distinct := (&core.Recurrence{FixedScore: fixedScore}).Distinct(rule, ticks)
	switch {
	case distinct == ticks:
		return ""
	case distinct > 1:
		return fmt.Sprintf("The queue %s merges by %v, so only the last %d of these ticks run.", queue, rule, distinct)
	case rule.Same == core.SamePush:
		return "The schedule has a score of its own, so the equal payloads of these ticks become one payload, which runs once."
	}
	return fmt.Sprintf("The queue %s merges by %v, so the equal payloads of these ticks become one payload, "+
		"which runs once. Only a queue that merges by every runs each.", queue, rule)
}
