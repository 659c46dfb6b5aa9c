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
	_, err := fmt.Fprint(a.stdout, b.String())
	return err
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
