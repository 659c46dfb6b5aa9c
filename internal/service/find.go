package service

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/shown"
)

// FindQuery names an id to look for.
type FindQuery struct {
	Queue    string `query:"queue" doc:"the queue to look in; by default all queues"`
	ID       string `query:"id" doc:"the id"`
	Payloads int    `query:"payloads" max:"1000" doc:"the number of payloads of each place to show, lowest score first; fewer beyond 8 MiB; with it the result of the last run is shown too"`
}

func (q *FindQuery) about(a *Action) {
	a.Queue, a.IDs = q.Queue, []string{q.ID}
	if q.Payloads > 0 {
		a.Verb = verbViewPayload
	}
}

// FoundRow is everything that a queue holds for an id.
type FoundRow struct {
	Queue string `json:"queue" class:"queue" doc:"the queue"`
	inspect.Found
}

// found returns the row of what a queue holds for an id, with payloads if payloads is above 0.
func (c *call) found(queue string, f *inspect.Found, payloads int) Row[FoundRow] {
	return view[FoundRow](c, payloads).Row(&FoundRow{queue, *f})
}

// find looks in one queue, which then always has a row, or in all.
func (c *call) find(q *FindQuery) (*List[FoundRow], error) {
	if q.Queue == "" {
		return c.findInAll(q)
	}
	f, err := c.inspector.FindSome(c.ctx, q.Queue, q.ID, q.Payloads)
	if err != nil {
		return nil, err
	}
	return newList([]Row[FoundRow]{c.found(q.Queue, &f, q.Payloads)}), nil
}

// findInAll looks in all queues. Queues that hold something for the id have a row. Queues whose
// shard of the id does not answer are unreached. It returns an error if no queue answers, or if the
// time for the search is over before all queues were asked.
func (c *call) findInAll(q *FindQuery) (*List[FoundRow], error) {
	queues, err := c.inspector.Queues(c.ctx)
	if err != nil {
		return nil, err
	}

	reply := newList[FoundRow](nil)
	payloads, bytes := q.Payloads, 0
	for _, queue := range queues {
		f, failed := c.inspector.FindSome(c.ctx, queue.Name, q.ID, payloads)
		switch {
		case failed == nil && (placed(&f) || f.Past != nil):
			reply.Items = append(reply.Items, c.found(queue.Name, &f, q.Payloads))
			if bytes += bytesOf(&f); bytes >= maxPageBytes {
				payloads = 0 // the counts still show that there are payloads
			}
		case failed == nil, errors.Is(failed, inspect.ErrUnknownQueue): // which was forgotten meanwhile
		case c.ctx.Err() != nil:
			return nil, fmt.Errorf("search queue %s: %w", queue.Name, c.ctx.Err())
		case c.ProblemOf(queue.Name, failed).silent():
			err = failed
			shard := core.Shard{Queue: queue.Name, Index: core.ShardOf(q.ID, queue.Shards)}
			reply.Unreached = append(reply.Unreached, shard.String())
		default:
			return nil, failed
		}
	}

	if len(reply.Unreached) > 0 && len(reply.Unreached) == len(queues) {
		return nil, err
	}
	return reply, nil
}

// placed reports whether something of an id was found in one of its places.
func placed(f *inspect.Found) bool {
	return f.Queued != nil || f.Claimed != nil || f.DeadLetter != nil || len(f.Damaged) > 0
}

// bytesOf returns how many bytes of payloads, and of a result, were found.
func bytesOf(f *inspect.Found) (n int) {
	if f.Queued != nil {
		n += sizeOf(f.Queued.Payloads)
	}
	if f.Claimed != nil {
		n += sizeOf(f.Claimed.Payloads)
	}
	if f.DeadLetter != nil {
		n += sizeOf(f.DeadLetter.Payloads)
	}
	if f.Past != nil {
		n += len(f.Past.Result)
	}
	return n
}

// payloadPlaces are the values of place.
var payloadPlaces = map[string]inspect.Place{
	"queued":  inspect.PlaceQueued,
	"claimed": inspect.PlaceClaimed,
	"dead":    inspect.PlaceDead,
}

// PayloadsQuery chooses a page of the payloads of an id.
type PayloadsQuery struct {
	ID    string `query:"id" doc:"the id"`
	Place string `query:"place" default:"queued" enum:"queued,claimed,dead" doc:"the queued job, the claimed one, or the dead letter"`
	After string `query:"after" doc:"the value of next of the previous page"`
	Limit int    `query:"limit" min:"1" max:"1000" default:"100" doc:"the maximum number of payloads; a page ends early after 8 MiB"`
}

func (q *PayloadsQuery) about(a *Action) { a.Verb, a.IDs = verbViewPayload, []string{q.ID} }

// payloadsOf lists the payloads of an id in one place. It requests one more than a page has, to
// know whether there is another page.
func (c *call) payloadsOf(q *PayloadsQuery) (*List[Payload], error) {
	after, err := inspect.ParsePayloadCursor(q.After)
	if err != nil {
		return nil, err
	}

	o := inspect.PayloadOptions{Place: payloadPlaces[q.Place], After: after, Limit: q.Limit + 1}
	reply := newList[Payload](nil)
	rows := shown.NewView[Payload](redactor{c.Service, true}, shown.Of{Queue: c.queue, ID: q.ID})
	bytes := 0
	for p, err := range c.inspector.Payloads(c.ctx, c.queue, q.ID, o) {
		if err != nil {
			return nil, err
		}
		if len(reply.Items) == q.Limit || bytes >= maxPageBytes {
			reply.Next = after.String()
			break
		}

		reply.Items = append(reply.Items, rows.Row(&Payload{Score: p.Score, Data: p.Data, Meta: p.Meta}))
		after, bytes = p.Cursor, bytes+len(p.Data)+len(p.Meta)
	}
	return reply, nil
}

// WhyQuery names an id of a queue.
type WhyQuery struct {
	Queue string `query:"queue" doc:"the queue"`
	ID    string `query:"id" doc:"the id"`
}

func (q *WhyQuery) about(a *Action) { a.Queue, a.IDs = q.Queue, []string{q.ID} }

// OwnerRow is the last announcement of the server that has a shard.
type OwnerRow struct {
	Name      string `json:"name" doc:"its name"`
	Draining  bool   `json:"draining" doc:"whether the server drains"`
	Lanes     int    `json:"lanes" doc:"the maximum number of batches that it runs at once"`
	Busy      int    `json:"busy" doc:"the batches that it runs now"`
	MaxLanes  int    `json:"max_lanes" doc:"the maximum number of batches of the queue that run at once on that server; 0 is no limit"`
	QueueBusy int    `json:"queue_busy" doc:"the number of batches of the queue that run on that server now"`
	Parallel  int    `json:"parallel" doc:"the maximum number of batches of a shard that run at once on that server; 0 is no limit"`
	BatchSize int    `json:"batch_size" doc:"the maximum number of jobs in a batch"`
	LaneBusy  bool   `json:"lane_busy" doc:"whether the one lane that a splitter gives this shard is busy"`
	// MaxRecoveries and LastChance are as in inspect.OwnerFacts.
	MaxRecoveries int            `json:"max_recoveries" doc:"the recoveries from which a job of the queue is on its last chance; 0 if no job is, or if the server does not announce it"`
	LastChance    *LastChanceRow `json:"last_chance,omitempty" doc:"the job on its last chance that the server runs; others wait for its end"`
}

// LastChanceRow is a job on its last chance.
type LastChanceRow struct {
	Queue string `json:"-" class:"queue"`
	Shard string `json:"shard" class:"public" doc:"its shard"`
	ID    string `json:"id,omitempty" class:"id" doc:"the entity that it is about; in a reply about an id it is left out if the job is of another queue"`
}

// lastChanceOf returns a job on its last chance, not redacted, or nil if there is none.
func lastChanceOf(shard core.Shard, id string) *LastChanceRow {
	if id == "" {
		return nil
	}
	return &LastChanceRow{shard.Queue, shard.String(), id}
}

// lastChance returns a job on its last chance as it may be shown, or nil if there is none.
func (c *call) lastChance(shard core.Shard, id string) *LastChanceRow {
	row := lastChanceOf(shard, id)
	if row != nil {
		row.ID = c.ID(shard.Queue, id)
	}
	return row
}

// WhyReply has the reason why the job of an id does not run.
type WhyReply struct {
	Reason string `json:"reason" doc:"the reason in a few fixed words, such as running, not due or no owner; docs/operations/why.md has each with its cure"`
	Text   string `json:"text" doc:"the reason as a sentence, with figures"`
	// Verdict has the reason and its checklist for pages.
	Verdict      Verdict   `json:"-"`
	Until        time.Time `json:"until,omitzero" doc:"when the reason ends by itself, if that is known"`
	Ahead        int       `json:"ahead" doc:"the number of due jobs before it in the shard, counted up to 1,000"`
	Alone        string    `json:"alone,omitempty" doc:"the id of a suspected job that runs alone first"`
	RunningSince time.Time `json:"running_since,omitzero" doc:"when the handler of the job started"`
	MaxRetries   int       `json:"max_retries" doc:"the retries of a job of the queue; 0 if no server announces them"`
	MaxRunning   int       `json:"max_running" doc:"the maximum number of batches of the queue that run at once on all servers; 0 is no limit"`
	Rate         string    `json:"rate,omitempty" doc:"the rate at which batches of the queue start over all servers; absent if there is none"`
	NextSlot     time.Time `json:"next_slot,omitzero" doc:"when the rate allows the next start, which may be now; absent if no job of the id is due"`
	StoppedUntil time.Time `json:"stopped_until,omitzero" doc:"when a stop of the rate ends; absent if it is not stopped"`
	Busy         int       `json:"busy" doc:"the number of batches of the queue that run on all servers now"`
	Servers      []string  `json:"servers" doc:"the names of the servers that serve the queue"`
	// ServersUnknown is Verdict.ServersUnknown.
	ServersUnknown bool               `json:"servers_unknown" doc:"whether the list of servers could not be read; then nothing here depends on servers"`
	Owner          *OwnerRow          `json:"owner,omitempty" doc:"the server that has the shard, if it runs"`
	Found          Row[FoundRow]      `json:"found" doc:"what the queue holds for the id, without payloads"`
	StaleDead      bool               `json:"stale_dead,omitempty" doc:"whether a revive leaves the dead letter in the morgue unless it is forced, since something as new was done of the id"`
	Schedules      []Row[ScheduleRow] `json:"schedules,omitempty" doc:"the first schedules of the id, if the queue has no job of it"`
	AsOf           time.Time          `json:"as_of,omitzero" doc:"the time of the figures, by the store's clock"`
}

// Verdict is a reason with its checklist, as a caller may see both: it is redacted already.
type Verdict struct {
	Reason   inspect.Reason
	Sentence inspect.Sentence
	Findings []inspect.Finding
}

// String returns the reason as a sentence.
func (v Verdict) String() string { return v.Sentence.String() }

// verdict returns a verdict as it may be shown.
func (c *call) verdict(q *WhyQuery, v *inspect.Verdict) Verdict {
	redacted := Verdict{v.Reason, c.sentence(q, v.Sentence), slices.Clone(v.Findings)}
	for at := range redacted.Findings {
		f := &redacted.Findings[at]
		f.Value = c.sentence(q, f.Value)
	}
	return redacted
}

// sentence returns a sentence about an id as it may be shown. The caller need not have the right to
// see the ids of other queues.
func (c *call) sentence(q *WhyQuery, s inspect.Sentence) inspect.Sentence {
	r, about := redactor{Service: c.Service}, shown.Of{Queue: q.Queue, ID: q.ID}
	parts := make(inspect.Sentence, 0, len(s))

	for _, p := range s {
		switch p.Kind {
		case inspect.PartText, inspect.PartSpan, inspect.PartTime, inspect.PartBreak:
		case inspect.PartJob:
			if p.Shard.Queue != q.Queue {
				p.ID = ""
			}
			p.ID = r.Text(shown.ID, shown.Of{Queue: p.Shard.Queue}, p.ID)
		case inspect.PartError:
			p.Text = r.Text(shown.Error, about, p.Text)
		case inspect.PartKey:
			p.Text = r.Text(shown.ID, about, p.Text)
		case inspect.PartNote:
			p.Text = r.Text(shown.Note, about, p.Text)
		default:
			continue // a kind that is not known here is not shown
		}
		parts = append(parts, p)
	}

	return parts
}

func (c *call) why(q *WhyQuery) (*WhyReply, error) {
	if q.Queue == "" {
		return nil, ProblemBadRequest.With("queue is missing")
	}
	v, err := c.inspector.Why(c.ctx, q.Queue, q.ID)
	if err != nil {
		return nil, err
	}

	servers := v.Servers
	if servers == nil {
		servers = []string{}
	}

	var owner *OwnerRow
	if o := v.OwnerFacts; v.Owner != "" {
		owner = &OwnerRow{
			Name:          v.Owner,
			Draining:      o.Draining,
			Lanes:         o.Lanes,
			Busy:          o.Busy,
			MaxLanes:      o.MaxLanes,
			QueueBusy:     o.QueueBusy,
			Parallel:      o.Parallel,
			BatchSize:     o.BatchSize,
			LaneBusy:      o.LaneBusy,
			MaxRecoveries: o.MaxRecoveries,
			LastChance:    c.lastChance(o.LastChance.Shard, o.LastChance.ID),
		}
		// The caller need not have the right to see the other queue.
		if o.LastChance.Shard.Queue != q.Queue && owner.LastChance != nil {
			owner.LastChance.ID = ""
		}
	}

	var schedules []Row[ScheduleRow]
	for at := range v.Schedules {
		schedules = append(schedules, c.schedule(&v.Schedules[at], 0))
	}

	verdict := c.verdict(q, &v)
	return &WhyReply{
		Reason:         v.Reason.String(),
		Text:           verdict.String(),
		Verdict:        verdict,
		Until:          v.Until.UTC(),
		Ahead:          v.Ahead,
		Alone:          c.ID(q.Queue, v.Alone),
		RunningSince:   v.RunningSince.UTC(),
		MaxRetries:     v.MaxRetries,
		MaxRunning:     v.MaxRunning,
		Rate:           v.Rate,
		NextSlot:       v.NextSlot.UTC(),
		StoppedUntil:   v.StoppedUntil.UTC(),
		Busy:           v.Busy,
		Servers:        servers,
		ServersUnknown: v.ServersUnknown,
		Owner:          owner,
		Found:          c.found(q.Queue, &v.Found, 0),
		StaleDead:      v.StaleDead,
		Schedules:      schedules,
		AsOf:           v.Now.UTC(),
	}, nil
}
