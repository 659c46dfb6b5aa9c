package dashboard

import (
	"slices"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// scheduleBody is the page of a schedule.
type scheduleBody struct {
	Queue, ID string
	Now       time.Time
	Row       scheduleRow
	// Nothing is the last tick if it pushed nothing. Job is what became of the job of the last tick
	// that pushed.
	Nothing *tickRow
	Job     *tickJob
	// Ticks are the last ticks, newest first.
	Ticks      []*tickRow
	Next       []nextRow
	Unreadable string
	// Range is the form of a backfill.
	Range   *backfillBody
	Payload *payload
	Hidden  bool // the payload must not be shown
	May     *rights
	// Backfill is the last backfill, or nil if there was none.
	Backfill *backfillRow
}

// backfillRow is the last backfill of a schedule.
type backfillRow struct {
	Ticks int
	// From and To are the range on a clock of the schedule's zone.
	From, To string
	By       string
	At       when
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

	cal, of := c.calendar(s), reply.Value()
	b.Row = cal.row(c.queue, &of.ScheduleRow, 1)
	b.Unreadable = of.Unreadable
	if f := of.Backfill; f != nil {
		b.Backfill = &backfillRow{
			Ticks: f.Ticks,
			From:  cal.local(f.From, of.Zone),
			To:    cal.local(f.To, of.Zone),
			By:    f.By,
			At:    when{f.At, b.Now},
		}
	}
	b.Range = &backfillBody{Queue: c.queue, Name: b.Row.Name, ID: b.ID, Zone: of.Zone}

	if of.Payload != nil {
		b.Payload = &payload{service.Payload{Data: of.Payload.Data}}
	}
	for at := range slices.Backward(of.Recent) {
		tick := cal.tick(&of.Recent[at], of.Zone)
		if tick.missed {
			tick.MakeUp = href("backfill", "q", c.queue, "name", b.Row.Name, "id", b.ID,
				"from", tick.At.At.Format(time.RFC3339Nano), "to", tick.At.At.Add(time.Second).Format(time.RFC3339Nano))
		}
		b.Ticks = append(b.Ticks, tick)
	}
	for _, tick := range of.NextTicks {
		b.Next = append(b.Next, nextRow{when{tick.At, b.Now}, cal.local(tick.At, of.Zone)})
	}

	if err := c.lastJob(b); err != nil {
		return nil, err
	}
	return &view{page: "schedule", title: shown(b.Row.Name), live: true, body: b}, nil
}

// lastJob adds what became of the job of the last tick, by what the queue has of the id now.
func (c *call) lastJob(b *scheduleBody) error {
	if len(b.Ticks) == 0 {
		return nil
	}
	last := b.Ticks[0]
	if !last.pushed {
		b.Nothing = last
	}
	pushed := last // or the last tick, if it is not known which one pushed
	if at := slices.IndexFunc(b.Ticks, func(t *tickRow) bool { return t.pushed }); at >= 0 {
		pushed = b.Ticks[at]
	}

	reply, err := asked(c, service.Find, "", &service.FindQuery{Queue: c.queue, ID: b.ID})
	if err != nil {
		return err
	}
	job := jobNow(reply.Items[0].Value(), pushed.At.At, b.Now)
	if pushed.pushed {
		pushed.Job = &job
	}
	if b.Nothing == nil || job.Word != gone.Word {
		b.Job = &job
	}
	return nil
}

// tickJob is what a queue has of an id whose schedule has pushed.
type tickJob struct {
	// Word is its state. Text describes it, and ends with At unless that is zero.
	Word, Text string
	At         when
	Class      string
	// Error is the job's last error.
	Error string
	// Server has claimed the job, at Since.
	Server string
	Since  when
}

// gone is a job that the queue does not have.
var gone = tickJob{Word: "done or removed", Text: "The queue has nothing of it any more: it is done, or was removed"}

// jobNow describes what a queue has of an id whose schedule has fired at a time.
func jobNow(f *service.FoundRow, fired, now time.Time) tickJob {
	switch {
	case len(f.Damaged) > 0:
		return tickJob{Word: "unreadable", Text: "A record of the id can't be read", Class: "late"}
	case f.Claimed != nil:
		return claimedNow(f, now)
	case f.Queued != nil:
		return queuedNow(f.Queued, now)
	case f.DeadLetter != nil && !f.DeadLetter.ChangedAt.Before(fired):
		return tickJob{
			Word:  "dead",
			Text:  "The id is in the morgue, changed",
			At:    when{f.DeadLetter.ChangedAt, now},
			Class: "bad",
			Error: f.DeadLetter.LastError,
		}
	case f.DeadLetter != nil:
		job := gone
		job.Text += ". The dead letter of the id is older"
		return job
	}
	return gone
}

// claimedNow describes a claimed job.
func claimedNow(f *service.FoundRow, now time.Time) tickJob {
	since := when{f.Claimed.Since, now}
	job := tickJob{Word: "running", At: since, Server: f.Claimed.Node, Since: since}
	server := shown(job.Server)
	switch {
	case f.Claimed.LeaseOver:
		job.Word, job.Class = "left", "bad"
		job.Text = "The id's job was left by " + server + ", which is gone or has lost the shard, and had claimed it"
	case f.Queued != nil:
		job.Text = "The id's job runs on " + server + ", and another one waits for its end. It was claimed"
	default:
		job.Text = "The id's job runs on " + server + ", or waits there for a lane. It was claimed"
	}
	return job
}

// queuedNow describes a queued job.
func queuedNow(q *inspect.QueuedJob, now time.Time) tickJob {
	due := when{q.PerformAt, now}
	switch {
	case q.Held:
		return tickJob{
			Word:  "held",
			Text:  "The id's job is held after its last retry",
			Class: "bad",
			Error: q.LastError,
		}
	case q.Retries > 0:
		text := "The id's job has failed " + plural(int64(q.Retries), "time") + ", and waits for a retry"
		return tickJob{Word: "retrying", Text: text, At: due, Class: "late", Error: q.LastError}
	case due.Ahead():
		return tickJob{Word: "waiting", Text: "The id's job waits, and is due", At: due}
	}
	return tickJob{Word: "waiting", Text: "The id's job is queued. It was first pushed", At: when{q.FirstPush, now}}
}
