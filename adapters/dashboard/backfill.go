package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// backfillBody is the preview of a backfill: the past ticks of a schedule in a range.
type backfillBody struct {
	Queue, Name, ID, Zone string
	// From and To are the range, for the fields of the form.
	From, To string
	// Wrong is why the range can't be backfilled.
	Wrong string
	// Count is the number of ticks. First and Last are the first and the last of them, and Between
	// is the number of those between. Count is 0 if no range was given.
	Count, Between int
	First, Last    []nextRow
	// Hidden are the fields of the form that confirms. Merged states that the ticks make fewer
	// payloads, or is empty.
	Hidden []hiddenField
	Merged string
	Back   string
}

// Most returns the largest number of ticks of a backfill.
func (*backfillBody) Most() int { return inspect.MaxBackfill }

// sampleTicks is the number of the first and of the last ticks that a preview shows.
const sampleTicks = 3

// backfillPage previews a backfill.
func (c *call) backfillPage() (*view, error) {
	if err := c.admitPreview(); err != nil {
		return nil, err
	}
	s, stats, err := c.of()
	if err != nil {
		return nil, err
	}

	q := c.r.URL.Query()
	b := &backfillBody{Queue: c.queue, Name: q.Get("name"), ID: q.Get("id"), From: q.Get("from"), To: q.Get("to")}
	b.Back = href("schedule", "q", c.queue, "name", b.Name, "id", b.ID)
	schedule, err := asked(c, service.Schedule, c.queue, &service.ScheduleQuery{Name: b.Name, ID: b.ID, Ticks: 1})
	if err != nil {
		return nil, err
	}
	b.Zone = schedule.Value().Zone
	v := &view{page: "backfill", title: "Backfill " + shown(b.Name), body: b}
	if !c.may().To("backfill-schedule") {
		p := newProblem(http.StatusForbidden, "Not allowed", "You don't have permission to push for schedules.")
		return nil, leadingBack(p, b.Back)
	}
	if b.From == "" && b.To == "" {
		return v, nil
	}

	cal := c.calendar(s)
	ask, ticks, err := c.pastTicks(q, cal.zone(b.Zone))
	if p := problemOf(err); p != nil && p.Status == http.StatusBadRequest {
		b.Wrong, v.status = p.Detail, p.Status
		return v, nil
	}
	if err != nil {
		return nil, leadingBack(err, b.Back)
	}
	b.show(cal, ask, ticks)
	b.Merged = service.MergedTicks(c.queue, stats.Queue.Merge, schedule.Value().Score != nil, len(ticks))
	return v, nil
}

// show adds the ticks of the preview.
func (b *backfillBody) show(cal *calendar, ask *service.ScheduleBackfillBody, ticks []service.NextTick) {
	b.From, b.To = inField(ask.From.In(cal.zone(b.Zone))), inField(ask.To.In(cal.zone(b.Zone)))
	b.Hidden = fields(
		"from", ask.From.UTC().Format(time.RFC3339Nano),
		"to", ask.To.UTC().Format(time.RFC3339Nano),
		"ticks", confirmedTicks(ticks),
	)

	b.Count, b.Between = len(ticks), max(0, len(ticks)-2*sampleTicks)
	for at, tick := range ticks {
		row := nextRow{when{tick.At, cal.now}, cal.local(tick.At, b.Zone)}
		switch {
		case at < sampleTicks:
			b.First = append(b.First, row)
		case at >= len(ticks)-sampleTicks:
			b.Last = append(b.Last, row)
		}
	}
}

// confirmedTicks describes ticks, so that an answer to a preview is known to be about these.
func confirmedTicks(ticks []service.NextTick) string {
	if len(ticks) == 0 {
		return ""
	}
	return fmt.Sprintf("%d, %s to %s", len(ticks), ticks[0].Local, ticks[len(ticks)-1].Local)
}

// pastTicks returns the backfill that a form names, and its ticks by a dry run.
func (c *call) pastTicks(
	form url.Values, zone *time.Location,
) (b *service.ScheduleBackfillBody, ticks []service.NextTick, err error) {
	b = &service.ScheduleBackfillBody{Name: form.Get("name"), ID: form.Get("id"), DryRun: true}
	if b.From, _, err = timesIn("from", form.Get("from"), zone); err != nil {
		return nil, nil, err
	}
	if _, b.To, err = timesIn("to", form.Get("to"), zone); err != nil {
		return nil, nil, err
	}

	reply, err := asked(c, service.BackfillSchedule, c.queue, b)
	if err != nil {
		return nil, nil, err
	}
	return b, reply.Ticks, nil
}

// fieldLayout is how browsers write a field of a date and a time. They leave out seconds that are
// zero.
const fieldLayout = "2006-01-02T15:04:05"

// inField returns a time for a field of a form.
func inField(at time.Time) string { return at.Format(fieldLayout) }

// timesIn reads a time of a form: one with an offset, or one of a clock in a zone. A clock time
// that comes twice is two instants. If the clock skips the time, first is the end of the gap, when
// the ticks of skipped times fire, and last is just after it.
func timesIn(field, text string, zone *time.Location) (first, last time.Time, err error) {
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at, at, nil
	}

	for _, layout := range []string{fieldLayout, "2006-01-02T15:04"} {
		if clock, err := time.Parse(layout, text); err == nil {
			first, last = instantsOf(clock, zone)
			return first, last, nil
		}
	}
	return first, last, service.ProblemBadRequest.With(
		"%s is %q; give a date and a time, such as 2026-01-02T15:04", field, text)
}

// instantsOf returns the first and the last instant at which clocks of a zone show what clock shows
// in UTC.
func instantsOf(clock time.Time, zone *time.Location) (first, last time.Time) {
	// A zone changes its offset by less than a day, and not twice within two.
	_, before := clock.Add(-24 * time.Hour).In(zone).Zone()
	_, after := clock.Add(24 * time.Hour).In(zone).Zone()
	late := clock.Add(-time.Duration(min(before, after)) * time.Second)
	early := clock.Add(-time.Duration(max(before, after)) * time.Second)

	shown := func(at time.Time) bool {
		_, offset := at.In(zone).Zone()
		return at.Add(time.Duration(offset) * time.Second).Equal(clock)
	}
	switch {
	case shown(early) && shown(late):
		return early, late
	case shown(early):
		return early, early
	case shown(late):
		return late, late
	}
	gapEnd, _ := late.In(zone).ZoneBounds()
	return gapEnd, gapEnd.Add(time.Microsecond)
}

// backfill pushes the payload of the schedule that a form names for the past ticks that its preview
// has shown.
func (c *call) backfill() (int, error) {
	form := c.r.PostForm
	ask, ticks, err := c.pastTicks(form, time.UTC)
	if err != nil {
		return 0, err
	}
	if form.Get("ticks") != confirmedTicks(ticks) {
		return 0, newProblem(http.StatusConflict, "The ticks are not those of the preview",
			"The schedule was changed meanwhile. Nothing was pushed. Preview the range again.")
	}

	ask.DryRun = false
	reply, err := asked(c, service.BackfillSchedule, c.queue, ask)
	if err != nil {
		return 0, err
	}
	return len(reply.Ticks), nil
}
