package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
)

// barWidth is how many characters a bar has between its brackets.
const barWidth = 30

// showProgress shows the progress of a run of the given number of commits until done is closed: a
// moving bar if out is a terminal, and otherwise a line every few seconds.
func showProgress(out io.Writer, commits int64, snapshot func() counts, done <-chan struct{}) {
	before, after, erase := "", "\n", ""
	interval := 5 * time.Second
	if isTerminal(out) {
		before, after, erase = "\r", "", "\r\x1b[K"
		interval = 100 * time.Millisecond
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-done:
			fmt.Fprint(out, erase)
			return
		case <-tick.C:
			fmt.Fprint(out, before, progressLine(snapshot(), commits), after)
		}
	}
}

// progressLine returns one state of the bar: the commits that were pushed, times the
// share of their events that is handled.
func progressLine(c counts, commits int64) string {
	part := float64(c.commits) / float64(max(commits, 1)) * float64(c.handled) / float64(max(c.pushed, 1))
	full := int(part * barWidth)
	return fmt.Sprintf("[%s%s] %3.0f %%  %d of %d commits, %d of %d events handled",
		strings.Repeat("=", full), strings.Repeat(" ", barWidth-full), part*100,
		c.commits, commits, c.handled, c.pushed)
}

func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
