package main

import (
	"fmt"
	"io"
	"time"
)

// report is the result of a run.
type report struct {
	counts  counts
	faults  faultCount
	elapsed time.Duration
	// ended is why the run ended before all was handled; nil if it did not.
	ended error
	// broken counts links that did not fit, applied events that the index took.
	broken  *examples
	applied int64
	// nodes is how many processes handled beside this one, kills how often one was killed.
	nodes int
	kills int64
	// compared is nil if the run ended before.
	compared *comparison
}

// ok reports whether the run has shown that events were handled in order and none was lost.
func (r *report) ok() bool {
	if r.ended != nil || r.compared == nil {
		return false
	}
	broken, _ := r.broken.list()
	different, _ := r.compared.differences.list()
	return broken == 0 && different == 0 && r.counts.overlaps == 0 && r.applied == r.counts.pushed
}

// print writes the report.
func (r *report) print(w io.Writer) {
	c, seconds := r.counts, r.elapsed.Seconds()
	broken, first := r.broken.list()
	if r.nodes > 0 {
		fmt.Fprintf(w, "nodes        %d; one was killed and started again %d times\n", r.nodes, r.kills)
	}
	for _, line := range []struct {
		name, format string
		values       []any
	}{
		{"history", "%d commits, %d events", []any{c.commits, c.pushed}},
		{"handled", "%d events by %d jobs", []any{c.handled, c.jobs}},
		{"merged", "%d events that joined a job of their path, queued already (handled + repeated - jobs)", []any{c.handled + c.repeated - c.jobs}},
		{"repeated", "%d events that had been handled before", []any{c.repeated}},
		{"calls", "%d of the handler: %d done, %d failed, %d panicked; %d were slow",
			[]any{c.calls, c.jobs, r.faults.failed, r.faults.panicked, r.faults.slowed}},
		{"retries", "%d calls that followed a failed one of their path", []any{c.retries}},
		{"broken links", "%d", []any{broken}},
		{"overlaps", "%d", []any{c.overlaps}},
		{"elapsed", "%v", []any{r.elapsed.Round(time.Millisecond)}},
		{"rate", "%.0f jobs/s, %.0f events/s", []any{float64(c.jobs) / seconds, float64(c.handled) / seconds}},
	} {
		fmt.Fprintf(w, "%-13s"+line.format+"\n", append([]any{line.name}, line.values...)...)
	}
	printExamples(w, "broken link", broken, first)
	r.printVerdict(w)
}

func (r *report) printVerdict(w io.Writer) {
	if r.ended != nil {
		fmt.Fprintf(w, "ended early: %v; the index was not compared\n", r.ended)
	}
	if r.compared == nil {
		return
	}
	different, first := r.compared.differences.list()
	printExamples(w, "difference", different, first)
	if r.applied != r.counts.pushed {
		fmt.Fprintf(w, "the index took %d of %d events\n", r.applied, r.counts.pushed)
	}
	if different > 0 {
		fmt.Fprintf(w, "index differs from git ls-tree -r HEAD: %d of %d paths\n", different, r.compared.paths)
		return
	}
	fmt.Fprintf(w, "index equals git ls-tree -r HEAD: %d paths\n", r.compared.paths)
}

func printExamples(w io.Writer, what string, count int64, first []string) {
	for _, text := range first {
		fmt.Fprintf(w, "%s: %s\n", what, text)
	}
	if more := count - int64(len(first)); more > 0 {
		fmt.Fprintf(w, "%s: and %d more\n", what, more)
	}
}
