package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
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

// factsOf returns the checks of a verdict, as the dashboard shows them.
func factsOf(v *inspect.Verdict) (list []fact) {
	add := func(name string, good bool, format string, args ...any) {
		list = append(list, fact{map[bool]string{true: "✓", false: "✗"}[good], name, fmt.Sprintf(format, args...)})
	}
	switch {
	case v.ServersUnknown:
		list = append(list, fact{"?", "served", "the list of servers can't be read now"})
	case len(v.Servers) == 0:
		add("served", false, "no server runs this queue")
	default:
		add("served", true, "by %s", strings.Join(v.Servers, ", "))
	}
	runs := v.Reason == inspect.RunsNow || !v.RunningSince.IsZero()
	o := &v.OwnerFacts
	switch c := v.Found.Claimed; {
	case v.Owner != "":
		add("shard", !o.Draining, "%v, held by %s%s", v.Found.Shard, v.Owner, map[bool]string{true: ", which is draining"}[o.Draining])
		if o.Lanes > 0 {
			add("lane", runs || o.Busy < o.Lanes, "%d of %d lanes there are busy", o.Busy, o.Lanes)
		}
		if o.MaxLanes > 0 {
			add("lanes", runs || o.QueueBusy < o.MaxLanes, "%d of %d of the queue there are busy", o.QueueBusy, o.MaxLanes)
		}
	case c != nil && !c.LeaseOver:
		add("shard", true, "%v, held by %s", v.Found.Shard, c.Node)
	default:
		add("shard", v.ServersUnknown, "%v: no known running server has it", v.Found.Shard)
	}
	if q := v.Found.Queued; q != nil {
		if v.Found.Claimed != nil {
			add("id free", false, "its previous run must end first")
		}
		if v.Reason >= inspect.QueuePaused { // for the reasons before QueuePaused it is unknown whether the queue is paused
			add("queue", v.Reason != inspect.QueuePaused, "%s", map[bool]string{true: "paused", false: "active"}[v.Reason == inspect.QueuePaused])
		}
		switch wait := q.PerformAt.Sub(v.Now).Round(time.Second); {
		case q.Held:
			add("due", false, figures.Never)
		case q.PerformAt.After(v.Now):
			add("due", false, "in %s", figures.Span(wait))
		default:
			add("due", true, "for %s", figures.Span(-wait))
		}
		add("in front", v.Ahead == 0, "due jobs of the shard: %s", figures.Exact(int64(v.Ahead)))
		if v.Alone != "" {
			add("alone", false, "%s runs alone, and comes first", v.Alone)
		}
		if q.Retries > 0 {
			add("failures", false, "%d, the last: %s", q.Retries, shortened(q.LastError, 60))
		}
	}
	if of := o.LastChance; v.Reason == inspect.BehindLastChance {
		add("last chance", false, "taken by %s of %v", of.ID, of.Shard)
	}
	if v.MaxRunning > 0 {
		add("limit", runs || v.Busy < v.MaxRunning, "%d of %d running on all servers (MaxRunning)", v.Busy, v.MaxRunning)
	}
	if d := v.Found.DeadLetter; d != nil {
		add("morgue", v.Reason != inspect.OnlyDead, "payloads there: %d, the last error: %s", d.PayloadCount, shortened(d.LastError, 60))
	}
	return list
}
