package main

import (
	"fmt"
	"strings"

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
	{"rate", true, func(v *inspect.Verdict) any { return v.Rate }},
	{"next_slot", true, func(v *inspect.Verdict) any { return v.NextSlot }},
	{"stopped_until", true, func(v *inspect.Verdict) any { return v.StoppedUntil }},
	{"stale_dead", true, func(v *inspect.Verdict) any { return v.StaleDead }},
	{"busy", true, func(v *inspect.Verdict) any { return announced(v, v.Busy) }},
	{"servers", false, func(v *inspect.Verdict) any { return v.Servers }},
	{"servers_unknown", true, func(v *inspect.Verdict) any { return v.ServersUnknown }},
	{"found", false, func(v *inspect.Verdict) any { return foundColumns.row(&v.Found) }},
	{"schedules", true, func(v *inspect.Verdict) any { return scheduleObjects(v.Schedules) }},
	{"as_of", true, func(v *inspect.Verdict) any { return v.Now }},
}

// signs are the signs of the states of findings.
var signs = map[inspect.FindingState]string{
	inspect.FindingUnknown: "?",
	inspect.FindingGood:    "✓",
	inspect.FindingBad:     "✗",
}

// showVerdict prints why a job does not run: a sentence, and then the facts behind it.
func (a *app) showVerdict(v *inspect.Verdict) error {
	var b strings.Builder
	text := escaped(v.Sentence.Format(formatted))
	fmt.Fprintf(&b, "%s.\n\n", strings.ToUpper(text[:1])+text[1:])
	for _, f := range v.Findings {
		fmt.Fprintf(&b, "%s %s %s\n", signs[f.State], filled(f.Name, 9), escaped(f.Value.Format(formatted)))
	}
	writeFailures(&b, v)
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
}

// writeFailures writes the last failures of the job of a verdict, or of the dead letter of an id
// without a job, if there are several. The findings have the last one.
func writeFailures(b *strings.Builder, v *inspect.Verdict) {
	var failures []inspect.Failure
	switch found := &v.Found; {
	case found.Queued != nil:
		failures = found.Queued.Failures
	case found.Claimed != nil:
		failures = found.Claimed.Failures
	case found.DeadLetter != nil:
		failures = found.DeadLetter.Failures
	}
	if len(failures) < 2 {
		return
	}

	b.WriteString("\nThe last failures:\n")
	for at := range failures {
		f := &failures[at]
		when, on := "at an unknown time", ""
		if !f.At.IsZero() {
			when = figures.Span(max(0, v.Now.Sub(f.At))) + " ago" // a server's clock may be ahead
		}
		if f.On != "" {
			on = " on " + f.On
		}
		fmt.Fprintf(b, "- %s%s: %s\n", when, escaped(on), shortened(f.Text, 60))
	}
}

// formatted returns a part of a sentence for people.
func formatted(p inspect.Part) string {
	switch p.Kind {
	case inspect.PartSpan:
		return figures.Span(p.Span)
	case inspect.PartError, inspect.PartNote:
		return shortened(p.Text, 60)
	}
	return p.String()
}
