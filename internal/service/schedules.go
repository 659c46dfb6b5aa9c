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
	Name          string           `json:"name" doc:"its name, unique for the id"`
	ID            string           `json:"id" doc:"the entity that it pushes for"`
	Shard         string           `json:"shard" doc:"its shard, as orders/3"`
	Spec          string           `json:"spec" doc:"the rule for its ticks, as it is stored"`
	Words         string           `json:"words" doc:"that rule in words, or its cron expression"`
	Zone          string           `json:"zone" doc:"the time zone of its cron expression; UTC for an interval"`
	Next          time.Time        `json:"next,omitzero" doc:"the time of its next tick, before jitter; absent if it has no tick any more"`
	Due           time.Time        `json:"due,omitzero" doc:"when that tick is pushed; absent while the schedule is paused"`
	Late          float64          `json:"late_seconds" doc:"how many seconds the tick has been due; 0 if it is not"`
	Paused        bool             `json:"paused" doc:"whether an operator has paused the schedule"`
	Note          string           `json:"note,omitempty" doc:"the reason of the pause"`
	PausedBy      string           `json:"paused_by,omitempty" doc:"who paused it, or gave another note later"`
	PausedAt      time.Time        `json:"paused_at,omitzero" doc:"when it was paused; absent if that is not known"`
	Jitter        float64          `json:"jitter_seconds" doc:"each tick is delayed by a time below it"`
	CatchupMost   int              `json:"catchup_most" doc:"how many ticks are pushed if more are due at once, the newest"`
	CatchupWithin float64          `json:"catchup_within_seconds" doc:"the age up to which a tick is pushed; 0 is any age"`
	Skip          bool             `json:"skip" doc:"whether a tick is dropped while the id has a job"`
	Score         *float64         `json:"score,omitempty" doc:"the score of each payload; absent if it is the time of the tick"`
	Payload       *SchedulePayload `json:"payload,omitempty" doc:"the payload, if the request has payloads"`
	Tags          []string         `json:"tags,omitempty" doc:"the tags of each push; absent if ids are redacted"`
	Set           string           `json:"set,omitempty" doc:"the set of schedules that a program declares it in"`
	Version       int64            `json:"version,omitempty" doc:"the version of that set"`
	Edited        bool             `json:"edited" doc:"whether an operator has edited it since it was declared"`
	By            string           `json:"by,omitempty" doc:"who changed it last: code, or an operator"`
	ChangedAt     time.Time        `json:"changed_at" doc:"when that was"`
	Fired         int64            `json:"fired" doc:"the number of its pushes, also those by hand"`
	Missed        int64            `json:"missed" doc:"the number of ticks that its catch-up dropped"`
	Skipped       int64            `json:"skipped" doc:"the number of ticks that were dropped since the id had a job"`
	Recent        []TickRow        `json:"recent,omitempty" doc:"its last ticks, oldest first"`
	Backfill      *BackfillRow     `json:"backfill,omitempty" doc:"the last backfill, whose ticks the counts and recent don't have"`
	Broken        string           `json:"broken,omitempty" doc:"why a server can't read the spec; it tries again each minute"`
}

// SchedulePayload is the payload of a schedule.
type SchedulePayload struct {
	Octets
	Meta       *string `json:"meta,omitempty" doc:"the Meta of each push, if it is UTF-8"`
	MetaBase64 *string `json:"meta_base64,omitempty" doc:"the Meta in standard Base64, if it is not UTF-8"`
}

// TickRow is a past tick of a schedule.
type TickRow struct {
	At      time.Time `json:"at" doc:"the time of the tick, before jitter"`
	Outcome string    `json:"outcome" doc:"fired, missed, skipped or by hand"`
	Late    float64   `json:"late_seconds" doc:"the seconds from when it was due to its outcome"`
}

// BackfillRow is a push of the past ticks of a schedule by an operator.
type BackfillRow struct {
	From  time.Time `json:"from" doc:"the begin of the range, inclusive"`
	To    time.Time `json:"to" doc:"the end of the range, exclusive"`
	Ticks int       `json:"ticks" doc:"the number of ticks that were pushed, the first of the range"`
	By    string    `json:"by,omitempty" doc:"who pushed them"`
	At    time.Time `json:"at" doc:"when it began"`
}

// schedule returns the row of a schedule. payloads above 0 shows its payload.
func (c *call) schedule(s *inspect.Schedule, payloads int) ScheduleRow {
	row := ScheduleRow{
		Name:          s.Name,
		ID:            c.ID(s.Queue, s.ID),
		Shard:         core.Shard{Queue: s.Queue, Index: s.Shard}.String(),
		Spec:          s.Spec,
		Words:         specs.Words(s.Spec),
		Zone:          specs.Zone(s.Spec),
		Due:           utc(s.Due),
		Late:          s.Late.Seconds(),
		Paused:        s.Paused,
		Note:          c.note(s.Queue, s.ID, s.Note),
		Jitter:        s.Jitter.Seconds(),
		CatchupMost:   max(1, s.Catchup.Most),
		CatchupWithin: s.Catchup.Within.Seconds(),
		Skip:          s.Skip,
		Tags:          c.tags(s.Tags.List()),
		Set:           s.Set,
		Version:       s.Version,
		Edited:        s.Edited,
		By:            s.By,
		ChangedAt:     s.ChangedAt.Time().UTC(),
		Fired:         s.Fired,
		Missed:        s.Missed,
		Skipped:       s.Skipped,
		Broken:        c.ErrorText(s.Queue, s.ID, s.Broken),
	}

	// Fields that not every schedule has are absent from its row, not zero.
	if s.Next < core.MaxInstant {
		row.Next = s.Next.Time().UTC()
	}
	if s.Paused {
		row.PausedBy = s.PausedBy
	}
	if s.Paused && s.PausedAt > 0 {
		row.PausedAt = s.PausedAt.Time().UTC()
	}
	if s.FixedScore {
		row.Score = &s.Score
	}

	if payloads > 0 {
		row.Payload = &SchedulePayload{Octets: OctetsOf(c.bytes(s.Queue, s.ID, s.Data))}
		if s.Meta != nil && c.o.RedactPayload == nil {
			meta := OctetsOf(s.Meta)
			row.Payload.Meta, row.Payload.MetaBase64 = meta.Data, meta.Base64
		}
	}

	if b := s.Backfill; b != nil {
		row.Backfill = &BackfillRow{b.From.Time().UTC(), b.To.Time().UTC(), b.Ticks, b.By, b.At.Time().UTC()}
	}
	for _, t := range s.Recent {
		row.Recent = append(row.Recent, TickRow{t.Due.Time().UTC(), string(t.Outcome), t.Late.Seconds()})
	}
	return row
}

// note returns the note of a pause as it may be shown: by the rule of errors, and without quoted
// texts if ids are redacted. Without a rule of errors it is then hidden, since people write ids
// without quotes.
func (c *call) note(queue, id, text string) string {
	if text != "" && c.o.RedactID != nil && c.o.RedactError == nil {
		return "…"
	}
	return c.ErrorText(queue, id, c.withoutIDs(text))
}

// utc returns a time in UTC, and the zero time as it is.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
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
	Name  string      `json:"name" doc:"the name"`
	Count int64       `json:"count" doc:"the number of its schedules, one for each of as many ids"`
	First ScheduleRow `json:"first" doc:"the one with the smallest id that can be read, without payload; if no record can be read, it has no id, and broken is the reason"`
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
	NextTicks  []NextTick `json:"next_ticks" doc:"its next ticks, before jitter; of several overdue ones only the first"`
	Unreadable string     `json:"unreadable,omitempty" doc:"why this process can't compute them"`
}

// NextTick is a tick to come.
type NextTick struct {
	At    time.Time `json:"at" doc:"its time"`
	Local string    `json:"local" doc:"its date and time in the zone of the schedule"`
}

func (c *call) oneSchedule(q *ScheduleQuery) (*ScheduleReply, error) {
	s, err := c.inspector.Schedule(c.ctx, c.queue, q.ID, q.Name)
	if err != nil {
		return nil, err
	}

	reply := &ScheduleReply{ScheduleRow: c.schedule(&s, q.Payloads), NextTicks: []NextTick{}}
	ticks, err := s.NextTicks(q.Ticks)
	if err != nil {
		reply.Unreadable = c.ErrorText(c.queue, q.ID, err.Error())
	}
	for _, tick := range ticks {
		reply.NextTicks = append(reply.NextTicks, nextTick(tick))
	}
	return reply, nil
}

func nextTick(tick time.Time) NextTick { return NextTick{tick.UTC(), tick.Format(time.RFC3339)} }
