package service

import (
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/specs"
)

// SchedulesQuery chooses a page of the schedules of a queue.
type SchedulesQuery struct {
	Name     string `query:"name" doc:"only schedules with this name"`
	ID       string `query:"id" doc:"only schedules of this id"`
	After    string `query:"after" doc:"the value of next of the previous page"`
	Limit    int    `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of rows, in order of name and id"`
	Payloads int    `query:"payloads" max:"1" doc:"1 shows the payload of each schedule"`
}

func (q *SchedulesQuery) about(a *Action) {
	a.IDs = givenID(q.ID)
	if q.Payloads > 0 {
		a.Verb = verbViewPayload
	}
}

// givenID returns an id as the ids of an Action: none if it is empty.
func givenID(id string) []string {
	if id == "" {
		return nil
	}
	return []string{id}
}

// ScheduleRow is a schedule.
type ScheduleRow struct {
	Name          string           `json:"name" class:"public" doc:"its name, unique for the id"`
	ID            string           `json:"id" class:"id" doc:"the entity that it pushes for"`
	Shard         core.Shard       `json:"shard" class:"queue" wide:"true" doc:"its shard, as orders/3"`
	Spec          string           `json:"spec" class:"public" wide:"true" doc:"the rule for its ticks, as it is stored"`
	Words         string           `json:"words" class:"public" doc:"that rule in words, or its cron expression"`
	Zone          string           `json:"zone" class:"public" doc:"the time zone of its cron expression; UTC for an interval"`
	Next          time.Time        `json:"next,omitzero" class:"public" doc:"the time of its next tick, before jitter; absent if it has no tick any more"`
	Due           time.Time        `json:"due,omitzero" class:"public" wide:"true" doc:"when that tick is pushed; absent while the schedule is paused"`
	Late          time.Duration    `json:"late_seconds" class:"public" doc:"how many seconds the tick has been due; 0 if it is not"`
	Paused        bool             `json:"paused" class:"public" doc:"whether an operator has paused the schedule"`
	Note          string           `json:"note,omitempty" class:"note" doc:"the reason of the pause"`
	PausedBy      string           `json:"paused_by,omitempty" class:"public" wide:"true" doc:"who paused it, or gave another note later"`
	PausedAt      time.Time        `json:"paused_at,omitzero" class:"public" wide:"true" doc:"when it was paused; absent if that is not known"`
	Jitter        time.Duration    `json:"jitter_seconds" class:"public" wide:"true" doc:"each tick is delayed by a time below it"`
	CatchupMost   int              `json:"catchup_most" class:"public" wide:"true" doc:"how many ticks are pushed if more are due at once, the newest"`
	CatchupWithin time.Duration    `json:"catchup_within_seconds" class:"public" wide:"true" doc:"the age up to which a tick is pushed; 0 is any age"`
	Skip          bool             `json:"skip" class:"public" wide:"true" doc:"whether a tick is dropped while the id has a job"`
	Score         *float64         `json:"score,omitempty" class:"public" wide:"true" doc:"the score of each payload; absent if it is the time of the tick"`
	Payload       *SchedulePayload `json:"payload,omitempty" class:"payload" doc:"the payload, if the request has payloads"`
	Tags          []string         `json:"tags,omitempty" class:"tags" wide:"true" doc:"the tags of each push; absent if ids are redacted"`
	Set           string           `json:"set,omitempty" class:"public" wide:"true" doc:"the set of schedules that a program declares it in"`
	Version       int64            `json:"version,omitempty" class:"public" wide:"true" doc:"the version of that set"`
	Edited        bool             `json:"edited" class:"public" wide:"true" doc:"whether an operator has edited it since it was declared"`
	By            string           `json:"by,omitempty" class:"public" wide:"true" doc:"who changed it last: code, or an operator"`
	ChangedAt     time.Time        `json:"changed_at" class:"public" wide:"true" doc:"when that was"`
	Fired         int64            `json:"fired" class:"public" wide:"true" doc:"the number of its pushes, also those by hand"`
	Missed        int64            `json:"missed" class:"public" wide:"true" doc:"the number of ticks that its catch-up dropped"`
	Skipped       int64            `json:"skipped" class:"public" wide:"true" doc:"the number of ticks that were dropped since the id had a job"`
	Recent        []TickRow        `json:"recent,omitempty" class:"public" doc:"its last ticks, oldest first"`
	Backfill      *BackfillRow     `json:"backfill,omitempty" class:"public" doc:"the last backfill, whose ticks the counts and recent don't have"`
	Broken        string           `json:"broken,omitempty" class:"error" wide:"true" doc:"why a server can't read the spec; it tries again each minute"`
}

// SchedulePayload is the payload of a schedule.
type SchedulePayload struct {
	Data []byte `json:"data" class:"payload" doc:"the bytes, if they are UTF-8" base64:"the bytes in standard Base64, if they are not UTF-8"`
	Meta []byte `json:"meta,omitempty" class:"meta" doc:"the Meta of each push, if it is UTF-8" base64:"the Meta in standard Base64, if it is not UTF-8"`
}

// TickRow is a past tick of a schedule.
type TickRow struct {
	At      time.Time     `json:"at" class:"public" doc:"the time of the tick, before jitter"`
	Outcome string        `json:"outcome" class:"public" doc:"fired, missed, skipped or by hand"`
	Late    time.Duration `json:"late_seconds" class:"public" doc:"the seconds from when it was due to its outcome"`
}

// BackfillRow is a push of the past ticks of a schedule by an operator.
type BackfillRow struct {
	From  time.Time `json:"from" class:"public" doc:"the begin of the range, inclusive"`
	To    time.Time `json:"to" class:"public" doc:"the end of the range, exclusive"`
	Ticks int       `json:"ticks" class:"public" doc:"the number of ticks that were pushed, the first of the range"`
	By    string    `json:"by,omitempty" class:"public" doc:"who pushed them"`
	At    time.Time `json:"at" class:"public" doc:"when it began"`
}

// schedule returns the row of a schedule. payloads above 0 shows its payload.
func (c *call) schedule(s *inspect.Schedule, payloads int) Row[ScheduleRow] {
	row := ScheduleOf(s)
	return view[ScheduleRow](c, payloads).Row(&row)
}

// ScheduleOf returns the values of a schedule, not redacted.
func ScheduleOf(s *inspect.Schedule) ScheduleRow {
	row := ScheduleRow{
		Name:          s.Name,
		ID:            s.ID,
		Shard:         core.Shard{Queue: s.Queue, Index: s.Shard},
		Spec:          s.Spec,
		Words:         specs.Words(s.Spec),
		Zone:          specs.Zone(s.Spec),
		Due:           s.Due,
		Late:          s.Late,
		Paused:        s.Paused,
		Note:          s.Note,
		Jitter:        s.Jitter,
		CatchupMost:   max(1, s.Catchup.Most),
		CatchupWithin: s.Catchup.Within,
		Skip:          s.Skip,
		Payload:       &SchedulePayload{s.Data, s.Meta},
		Tags:          s.Tags.List(),
		Set:           s.Set,
		Version:       s.Version,
		Edited:        s.Edited,
		By:            s.By,
		ChangedAt:     s.ChangedAt.Time(),
		Fired:         s.Fired,
		Missed:        s.Missed,
		Skipped:       s.Skipped,
		Broken:        s.Broken,
	}

	// Fields that not every schedule has are absent from its row, not zero.
	if s.Next < core.MaxInstant {
		row.Next = s.Next.Time()
	}
	if s.Paused {
		row.PausedBy = s.PausedBy
	}
	if s.Paused && s.PausedAt > 0 {
		row.PausedAt = s.PausedAt.Time()
	}
	if s.FixedScore {
		row.Score = &s.Score
	}

	if b := s.Backfill; b != nil {
		row.Backfill = &BackfillRow{b.From.Time(), b.To.Time(), b.Ticks, b.By, b.At.Time()}
	}
	for _, t := range s.Recent {
		row.Recent = append(row.Recent, TickRow{t.Due.Time(), string(t.Outcome), t.Late})
	}
	return row
}

// scheduleCursor is the place of a schedule in a list, as a client gives it back.
func (c *call) scheduleCursor(k core.ScheduleKey) string {
	return c.sealed(base64.RawURLEncoding.EncodeToString([]byte(k.Name + " " + k.ID)))
}

// scheduleAfter reads a client's place in a list of schedules.
func (c *call) scheduleAfter(text string) (k core.ScheduleKey, err error) {
	if text == "" {
		return k, nil
	}
	text, err = c.opened(text, inspect.ErrInvalidCursor)
	if err != nil {
		return k, err
	}

	data, err := base64.RawURLEncoding.DecodeString(text)
	name, id, whole := strings.Cut(string(data), " ") // no name has a space
	k = core.ScheduleKey{ID: id, Name: name}
	if err != nil || !whole || k.Validate() != nil {
		return core.ScheduleKey{}, fmt.Errorf(
			"%w: %.40q; give the value of next of the previous page", inspect.ErrInvalidCursor, text)
	}
	return k, nil
}

func (c *call) schedules(q *SchedulesQuery) (*List[ScheduleRow], error) {
	o := inspect.ScheduleOptions{
		ScheduleSelection: inspect.ScheduleSelection{ID: q.ID, Name: q.Name},
		Limit:             q.Limit,
	}
	var err error
	if o.After, err = c.scheduleAfter(q.After); err != nil {
		return nil, err
	}

	reply := newList[ScheduleRow](nil)
	bytes := 0
	for s, err := range c.inspector.Schedules(c.ctx, c.queue, o) {
		if err != nil {
			unreached, err := c.partial(err)
			if err != nil {
				return nil, err
			}
			reply.Unreached = shardNames(unreached)
			break
		}

		reply.Items = append(reply.Items, c.schedule(&s, q.Payloads))
		if q.Payloads > 0 {
			bytes += len(s.Data) + len(s.Meta)
		}
		if full := bytes >= maxPageBytes; full || len(reply.Items) == q.Limit {
			reply.Next = c.scheduleCursor(s.ScheduleKey)
			if full {
				break // the next page reports shards that can't be reached
			}
		}
	}
	return reply, nil
}

// ScheduleNamesQuery chooses a page of the names of a queue's schedules.
type ScheduleNamesQuery struct {
	After string `query:"after" doc:"the value of next of the previous page"`
	Limit int    `query:"limit" min:"1" max:"100" default:"100" doc:"the maximum number of names, in their order"`
}

// ScheduleNameRow is the schedules of one name.
type ScheduleNameRow struct {
	Name  string      `json:"name" class:"public" doc:"the name"`
	Count int64       `json:"count" class:"public" doc:"the number of its schedules, one for each of as many ids"`
	First ScheduleRow `json:"first" class:"public" doc:"the one with the smallest id that can be read, without payload; if no record can be read, it has no id, and broken is the reason"`
}

func (c *call) scheduleNames(q *ScheduleNamesQuery) (*List[ScheduleNameRow], error) {
	names, err := c.inspector.ScheduleNames(c.ctx, c.queue, q.After, q.Limit)
	unreached, err := c.partial(err)
	if err != nil {
		return nil, err
	}
	reply := newList(c.ScheduleNameRows(names.Names))
	reply.Next, reply.Unreached = names.Next, shardNames(unreached)
	return reply, nil
}

// ScheduleQuery names a schedule.
type ScheduleQuery struct {
	Name     string `query:"name" doc:"its name"`
	ID       string `query:"id" doc:"its id"`
	Ticks    int    `query:"ticks" max:"100" default:"5" doc:"the number of next ticks to show"`
	Payloads int    `query:"payloads" max:"1" doc:"1 shows the payload"`
}

func (q *ScheduleQuery) about(a *Action) {
	(&SchedulesQuery{ID: q.ID, Payloads: q.Payloads}).about(a)
}

// ScheduleReply is a schedule with its next ticks.
type ScheduleReply struct {
	ScheduleRow
	NextTicks  []NextTick `json:"next_ticks" class:"public" doc:"its next ticks, before jitter; of several overdue ones only the first"`
	Unreadable string     `json:"unreadable,omitempty" class:"error" doc:"why this process can't compute them"`
}

// NextTick is a tick to come.
type NextTick struct {
	At    time.Time `json:"at" class:"public" doc:"its time"`
	Local string    `json:"local" class:"public" doc:"its date and time in the zone of the schedule"`
}

func (c *call) oneSchedule(q *ScheduleQuery) (*Row[ScheduleReply], error) {
	s, err := c.inspector.Schedule(c.ctx, c.queue, q.ID, q.Name)
	if err != nil {
		return nil, err
	}

	reply := ScheduleReply{ScheduleRow: ScheduleOf(&s)}
	ticks, err := s.NextTicks(q.Ticks)
	if err != nil {
		reply.Unreadable = err.Error()
	}
	for _, tick := range ticks {
		reply.NextTicks = append(reply.NextTicks, nextTick(tick))
	}
	return new(view[ScheduleReply](c, q.Payloads).Row(&reply)), nil
}

func nextTick(tick time.Time) NextTick { return NextTick{tick.UTC(), tick.Format(time.RFC3339)} }
