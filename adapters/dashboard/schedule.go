package dashboard

import (
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/service"
)

// scheduleBody is the page of a schedule.
type scheduleBody struct {
	Queue, ID string
	Now       time.Time
	Row       scheduleRow
	// Job states what became of the last tick's job.
	Job, JobClass string
	Ticks         []*tickRow
	Next          []nextRow
	Unreadable    string
	Payload       *payload
	Hidden        bool // the payload must not be shown
	May           *rights
	// LateFor is how long the next tick has been due.
	LateFor time.Duration
}

// nextRow is a tick to come.
type nextRow struct {
	At    when
	Local string
}

// nextTicks is the number of ticks to come on the page of a schedule.
const nextTicks = 5

// schedulePage makes the page of a schedule.
func (c *call) schedulePage() (*view, error) {
	s, _, err := c.of()
	if err != nil {
		return nil, err
	}

	q := c.r.URL.Query()
	b := &scheduleBody{Queue: c.queue, ID: q.Get("id"), Now: c.looker.now(), May: c.may()}

	ask := service.ScheduleQuery{Name: q.Get("name"), ID: b.ID, Ticks: nextTicks, Payloads: 1}
	reply, err := asked(c, service.Schedule, c.queue, &ask)
	if p := problemOf(err); p != nil && p.Name == "forbidden" {
		b.Hidden, ask.Payloads = true, 0
		reply, err = asked(c, service.Schedule, c.queue, &ask)
	}
	if err != nil {
		return nil, err
	}

	cal := c.calendar(s)
	b.Row = cal.row(c.queue, &reply.ScheduleRow, 1)
	b.Unreadable = reply.Unreadable
	b.LateFor = inSeconds(reply.Late)

	if reply.Payload != nil {
		b.Payload = &payload{service.Payload{Octets: reply.Payload.Octets}}
	}
	for at := range slices.Backward(reply.Recent) {
		b.Ticks = append(b.Ticks, cal.tick(&reply.Recent[at], reply.Zone))
	}
	for _, tick := range reply.NextTicks {
		b.Next = append(b.Next, nextRow{when{tick.At, b.Now}, cal.local(tick.At, reply.Zone)})
	}

	if err := c.lastJob(b, &reply.ScheduleRow); err != nil {
		return nil, err
	}
	return &view{page: "schedule", title: shown(b.Row.Name), live: true, body: b}, nil
}

// lastJob states what became of the job of the last tick, by what the queue has of the id now.
func (c *call) lastJob(b *scheduleBody, r *service.ScheduleRow) error {
	n := len(r.Recent)
	if n == 0 {
		return nil
	}

	last := &r.Recent[n-1]
	if o := core.TickOutcome(last.Outcome); o != core.TickFired && o != core.TickByHand {
		b.Job, b.JobClass = "It pushed nothing: "+b.Ticks[0].Words+".", b.Ticks[0].Class
		return nil
	}

	reply, err := asked(c, service.Find, "", &service.FindQuery{Queue: c.queue, ID: b.ID})
	if err != nil {
		return err
	}
	b.Job, b.JobClass = jobNow(&reply.Items[0], last.At, b.Now)
	return nil
}

// gone describes a job that the queue does not have.
const gone = "The queue has nothing of it any more: it is done, or was removed."

// jobNow describes what a queue has of an id whose schedule has fired at a time.
func jobNow(f *service.FoundRow, fired, now time.Time) (text, class string) {
	switch q := f.Queued; {
	case len(f.Damaged) > 0:
		return "A record of the id can't be read.", "late"
	case f.Claimed != nil && f.Claimed.LeaseOver:
		return "The id's job was left by a server that is gone.", "bad"
	case f.Claimed != nil && q != nil:
		return "The id's job runs, and another one waits for its end.", ""
	case f.Claimed != nil:
		return "The id's job runs, or a server has claimed it.", ""
	case q != nil && q.Held:
		return "The id's job is held after its last retry.", "bad"
	case q != nil && q.Retries > 0:
		return "The id's job has failed, and waits for a retry " + when{q.PerformAt, now}.Text() + ".", "late"
	case q != nil && q.PerformAt.After(now):
		return "The id's job waits, and is due " + when{q.PerformAt, now}.Text() + ".", ""
	case q != nil:
		return "The id's job is queued.", ""
	case f.Dead != nil && !f.Dead.ChangedAt.Before(fired):
		return "The id is in the morgue.", "bad"
	case f.Dead != nil:
		return gone + " The dead letter of the id is older.", ""
	}
	return gone, ""
}
