package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/specs"
)

// announced returns a number that servers of a verdict's queue announce, or nil for unknown if no
// server announces the queue.
func announced(v *inspect.Verdict, n int) any {
	if len(v.Servers)+len(v.Drains) == 0 {
		return nil
	}
	return n
}

var verdictColumns = columns[inspect.Verdict]{
	{"reason", false, func(v *inspect.Verdict) any { return v.Reason.String() }},
	{"text", false, func(v *inspect.Verdict) any { return v.Text }},
	{"until", false, func(v *inspect.Verdict) any { return v.Until }},
	{"ahead", false, func(v *inspect.Verdict) any { return v.Ahead }},
	{"alone", false, func(v *inspect.Verdict) any { return v.Alone }},
	{"running_since", false, func(v *inspect.Verdict) any { return v.RunningSince }},
	{"max_retries", true, func(v *inspect.Verdict) any { return announced(v, v.MaxRetries) }},
	{"max_running", true, func(v *inspect.Verdict) any { return announced(v, v.MaxRunning) }},
	{"busy", true, func(v *inspect.Verdict) any { return announced(v, v.Busy) }},
	{"servers", false, func(v *inspect.Verdict) any { return v.Servers }},
	{"servers_unknown", true, func(v *inspect.Verdict) any { return v.ServersUnknown }},
	{"found", false, func(v *inspect.Verdict) any { return foundColumns.row(&v.Found) }},
	{"schedules", true, func(v *inspect.Verdict) any { return scheduleObjects(v.Schedules) }},
	{"as_of", true, func(v *inspect.Verdict) any { return v.Now }},
}

// fact is a line of the checklist behind a verdict.
type fact struct {
	sign, name, value string
}

// showVerdict prints why a job does not run: a sentence, and then the facts behind it.
func (a *app) showVerdict(v *inspect.Verdict) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s.\n\n", escaped(strings.ToUpper(v.Text[:1])+v.Text[1:]))
	for _, f := range factsOf(v) {
		fmt.Fprintf(&b, "%s %s %s\n", f.sign, filled(f.name, 9), escaped(f.value))
	}
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// facts are the checks of a verdict, as the dashboard shows them.
type facts []fact

func (f *facts) add(name string, good bool, format string, args ...any) {
	sign := map[bool]string{true: "✓", false: "✗"}[good]
	*f = append(*f, fact{sign, name, fmt.Sprintf(format, args...)})
}

// factsOf returns the checks of a verdict.
func factsOf(v *inspect.Verdict) (list facts) {
	runs := v.Reason == inspect.RunsNow || !v.RunningSince.IsZero()
	list.addServers(v, runs)
	list.addQueued(v)

	for at := range v.Schedules {
		s := &v.Schedules[at]
		state := "next tick at " + forPeople(nextOf(s))
		switch {
		case blocked(s) != "":
			state = blocked(s)
		case s.Due.IsZero():
			state = "no next tick"
		case s.Late > 0:
			state = "late by " + figures.Span(s.Late)
		}
		list.add("schedule", !s.Due.IsZero() && s.Late == 0 && s.Broken == "",
			"%s, %s in %s: %s", s.Name, specs.Words(s.Spec), specs.Zone(s.Spec), state)
	}
	if of := v.OwnerFacts.LastChance; v.Reason == inspect.BehindLastChance {
		list.add("last chance", false, "taken by %s of %v", of.ID, of.Shard)
	}
	if v.MaxRunning > 0 {
		list.add("limit", runs || v.Busy < v.MaxRunning,
			"%d of %d running on all servers (MaxRunning)", v.Busy, v.MaxRunning)
	}
	if d := v.Found.DeadLetter; d != nil {
		list.add("morgue", v.Reason != inspect.OnlyDead, "payloads there: %d, the last error: %s",
			d.PayloadCount, shortened(d.LastError, 60))
	}
	return list
}

// addServers adds what is known of the servers of the queue and of the owner of the job's shard.
// runs is set if the job runs.
func (f *facts) addServers(v *inspect.Verdict, runs bool) {
	switch {
	case v.ServersUnknown:
		*f = append(*f, fact{"?", "served", "the list of servers can't be read now"})
	case len(v.Servers) == 0:
		f.add("served", false, "no server runs this queue")
	default:
		f.add("served", true, "by %s", strings.Join(v.Servers, ", "))
	}

	o := &v.OwnerFacts
	switch c := v.Found.Claimed; {
	case v.Owner != "":
		draining := map[bool]string{true: ", which is draining"}[o.Draining]
		f.add("shard", !o.Draining, "%v, held by %s%s", v.Found.Shard, v.Owner, draining)
		if o.Lanes > 0 {
			f.add("lane", runs || o.Busy < o.Lanes, "%d of %d lanes there are busy", o.Busy, o.Lanes)
		}
		if o.MaxLanes > 0 {
			f.add("lanes", runs || o.QueueBusy < o.MaxLanes,
				"%d of %d of the queue there are busy", o.QueueBusy, o.MaxLanes)
		}
	case c != nil && !c.LeaseOver:
		f.add("shard", true, "%v, held by %s", v.Found.Shard, c.Node)
	default:
		f.add("shard", v.ServersUnknown, "%v: no known running server has it", v.Found.Shard)
	}
}

// addQueued adds what the queued job waits for, if there is one.
func (f *facts) addQueued(v *inspect.Verdict) {
	q := v.Found.Queued
	if q == nil {
		return
	}

	if v.Found.Claimed != nil {
		f.add("id free", false, "its previous run must end first")
	}
	if v.Reason >= inspect.QueuePaused { // for the reasons before QueuePaused it is unknown whether the queue is paused
		paused := v.Reason == inspect.QueuePaused
		f.add("queue", !paused, "%s", map[bool]string{true: "paused", false: "active"}[paused])
	}

	switch wait := q.PerformAt.Sub(v.Now).Round(time.Second); {
	case q.Held:
		f.add("due", false, figures.Never)
	case q.PerformAt.After(v.Now):
		f.add("due", false, "in %s", figures.Span(wait))
	default:
		f.add("due", true, "for %s", figures.Span(-wait))
	}

	f.add("in front", v.Ahead == 0, "due jobs of the shard: %s", figures.Exact(int64(v.Ahead)))
	if v.Alone != "" {
		f.add("alone", false, "%s runs alone, and comes first", v.Alone)
	}
	if q.Retries > 0 {
		f.add("failures", false, "%d, the last: %s", q.Retries, shortened(q.LastError, 60))
	}
}
