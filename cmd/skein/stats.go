package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

var countColumns = columns[inspect.Counts]{
	{"length", false, func(c *inspect.Counts) any { return c.Length() }},
	{"morgue_length", false, func(c *inspect.Counts) any { return c.Dead }},
	{"waiting", false, func(c *inspect.Counts) any { return c.Waiting() }},
	{"lag", false, func(c *inspect.Counts) any { return c.Lag }},
	{"fresh", true, func(c *inspect.Counts) any { return c.Fresh }},
	{"retrying", false, func(c *inspect.Counts) any { return c.Retrying }},
	{"held", true, func(c *inspect.Counts) any { return c.Held }},
	{"claimed", false, func(c *inspect.Counts) any { return c.Claimed }},
	{"orphaned", true, func(c *inspect.Counts) any { return c.Orphaned }},
	{"quarantined", true, func(c *inspect.Counts) any { return c.Quarantined }},
	{"processed", false, func(c *inspect.Counts) any { return c.Processed }},
	{"failed", false, func(c *inspect.Counts) any { return c.Failed }},
	{"superseded", true, func(c *inspect.Counts) any { return c.Superseded }},
	{"stale", true, func(c *inspect.Counts) any { return c.Stale }},
	{"repeated", true, func(c *inspect.Counts) any { return c.Repeated }},
	{"oldest", true, func(c *inspect.Counts) any { return c.Oldest }},
}

// statLine is the line of a queue in the output of stats.
type statLine struct {
	inspect.QueueStats
	// servers is the number of servers that serve the queue and don't drain. It is negative if the
	// servers are not known. unowned is the number of shards without a valid lease.
	servers, unowned int
	// done and failed are jobs a second since the previous look. They are negative if they are not
	// known: after the first look, and if other shards can be reached than at the previous look.
	done, failed float64
}

// reached reports whether a shard of the queue could be read. Otherwise the counts are not known.
func (s *statLine) reached() bool { return len(s.Shards) > 0 || s.Queue.Shards == 0 }

// ofReached returns columns whose values are unknown if no shard of the queue could be read.
func ofReached(cols columns[statLine]) columns[statLine] {
	for at, c := range cols {
		cols[at].of = func(s *statLine) any {
			if !s.reached() {
				return nil
			}
			return c.of(s)
		}
	}
	return cols
}

var statColumns = append(append(columns[statLine]{
	{"name", false, func(s *statLine) any { return s.Queue.Name }},
	{"paused", false, func(s *statLine) any { return s.Queue.Paused }},
}, ofReached(within(countColumns, func(s *statLine) *inspect.Counts { return &s.Counts }))...), columns[statLine]{
	{"servers", false, func(s *statLine) any { return known(s.servers) }},
	{"shards", false, func(s *statLine) any { return s.Queue.Shards }},
	{"unowned", false, func(s *statLine) any { return known(s.unowned) }},
	{"index_ids", true, func(s *statLine) any { return s.Queue.IndexIDs }},
	{"merge", true, func(s *statLine) any { return s.Queue.Merge.String() }},
	{"settings", true, func(s *statLine) any { return s.Queue.Settings.String() }},
	{"as_of", true, func(s *statLine) any { return s.Now }},
}...)

// watchColumns are the columns of a watch, with rates.
var watchColumns = append(slices.Clone(statColumns), columns[statLine]{
	{"done_per_second", false, func(s *statLine) any { return rate(s.done) }},
	{"failed_per_second", false, func(s *statLine) any { return rate(s.failed) }},
}...)

// leftOut are the columns that a watch leaves out, from the first to the last, until the others fit
// the terminal. The columns that always stay show how many jobs wait, for how long, how fast they
// are done, and whether the queue is paused.
var leftOut = []string{"processed", "failed", "shards", "retrying", "unowned", "claimed", "servers", "morgue_length"}

// fitting returns the columns that fit the width of the terminal. Without a terminal, and in
// formats other than table, it returns all columns.
func (a *app) fitting(cols columns[statLine], lines []statLine) columns[statLine] {
	most := 0
	if f, ok := a.screen.(*os.File); ok && a.output == "table" && terminal(f) {
		most = columnsOf(f)
	}
	if most == 0 {
		return cols
	}
	return fittingWidth(cols, lines, most)
}

// fittingWidth returns the columns that fit a width. The columns that always stay may take more.
func fittingWidth(cols columns[statLine], lines []statLine, most int) columns[statLine] {
	for _, name := range leftOut {
		if widthOf(cols, lines) <= most {
			break
		}
		cols = slices.DeleteFunc(slices.Clone(cols), func(c column[statLine]) bool { return c.name == name })
	}
	return cols
}

// widthOf returns the width of a table in columns of a terminal.
func widthOf[T any](cols columns[T], items []T) (n int) {
	var table strings.Builder
	_ = formats["table"](&table, cols.heads(), func(yield func(*object, error) bool) {
		for at := range items {
			if !yield(cols.row(&items[at]), nil) {
				return
			}
		}
	})
	for line := range strings.Lines(table.String()) {
		n = max(n, columnsOfText(strings.TrimSuffix(line, "\n")))
	}
	return n
}

// known returns a number, or nil if it is negative, which stands for an unknown number.
func known(n int) any {
	if n < 0 {
		return nil
	}
	return n
}

func rate(perSecond float64) any {
	if perSecond < 0 {
		return nil
	}
	return float64(int(perSecond*10+0.5)) / 10
}

// watchRest is the longest pause that a watch makes because a look was slow.
const watchRest = 15 * time.Second

func (a *app) statsCommand() *cobra.Command {
	watch, interval := false, 2*time.Second
	c := a.command(
		"stats [QUEUE...]",
		"Show the sizes and the lag of queues, the one with the largest lag first",
		"skein stats --watch",
		cobra.ArbitraryArgs,
		func(ctx context.Context, i *inspect.Inspector, queues []string) error {
			if watch {
				return a.watchStats(ctx, i, queues, interval)
			}
			lines, err := a.statLines(ctx, i, queues, nil)
			return list(a, statColumns, all(lines, err))
		},
	)

	c.Flags().BoolVarP(&watch, "watch", "w", false,
		"refresh until Ctrl-C, with rates a second; a narrow terminal shows fewer columns, -o wide all")
	c.Flags().DurationVar(&interval, "interval", interval,
		"with --watch: the time between two reads; after a slow read 99 times as long as that read, 15s at most")
	return c
}

// watchStats shows statistics until ctx ends.
func (a *app) watchStats(ctx context.Context, i *inspect.Inspector, queues []string, interval time.Duration) error {
	var before []statLine
	return a.watch(ctx, interval, func() (show func() error) {
		lines, err := a.statLines(ctx, i, queues, before)
		before = lines
		return func() error {
			if a.output == "table" {
				defer a.narrowed()()
			}
			return list(a, a.fitting(watchColumns, lines), all(lines, err))
		}
	})
}

// watch calls look and shows its result, repeatedly, until ctx ends. It returns the error of the
// first look, unless only a part of the store could not be reached. Later errors are printed.
func (a *app) watch(ctx context.Context, interval time.Duration, look func() (show func() error)) error {
	if interval <= 0 {
		return fmt.Errorf("%w: --interval %v; give more than 0", errUsage, interval)
	}

	var frame io.Writer // a terminal that shows a frame, whose first line is the frame's time; otherwise nil
	var seen time.Time
	for looks := 0; ; looks++ {
		began := time.Now()
		show := aging(frame, seen, look)
		took := time.Since(began)
		if ctx.Err() != nil {
			return nil
		}

		seen = time.Now()
		switch {
		case terminal(a.screen):
			frame = a.screen
			_, _ = fmt.Fprintf(a.screen, "\x1b[H\x1b[2J%s\n", asOf(seen)) // move to the beginning, and clear
		case looks > 0 && a.asTable():
			_, _ = fmt.Fprintln(a.stdout)
		}

		// Continue after an error, because people watch during outages.
		if err := show(); err != nil && looks == 0 && !isPartial(err) {
			return err
		} else if err != nil {
			_, _ = fmt.Fprintln(a.stderr, "skein:", multiline(err.Error()))
		}

		if !rest(ctx, max(interval, service.RestAfter(took, 0, watchRest))) {
			return nil
		}
	}
}

// aging calls look. Meanwhile the first line of the previous frame, if there is one, shows the age
// of that frame.
func aging(frame io.Writer, seen time.Time, look func() (show func() error)) (show func() error) {
	if frame == nil {
		return look()
	}

	done := make(chan func() error, 1)
	go func() { done <- look() }()

	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case show := <-done:
			return show
		case now := <-tick.C:
			// Overwrite the first line, and move the cursor back.
			_, _ = fmt.Fprintf(frame, "\x1b7\x1b[H\x1b[2K%s, %v ago: the store is slow to answer\x1b8",
				asOf(seen), now.Sub(seen).Round(time.Second))
		}
	}
}

func asOf(seen time.Time) string { return "as of " + seen.UTC().Format(time.RFC3339) }

// asTable reports whether the output is a table, which is for people.
func (a *app) asTable() bool { return a.output == "table" || a.output == "wide" }

// rest waits for d. It returns false if ctx ends first.
func rest(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// terminal reports whether w is a terminal.
func terminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// statLines reads the statistics of queues. If parts of the store can't be reached, it returns the
// lines of the rest and an error.
func (a *app) statLines(
	ctx context.Context,
	i *inspect.Inspector,
	queues []string,
	before []statLine,
) ([]statLine, error) {
	stats, err := i.Stats(ctx, queues...)
	if err != nil && len(stats) == 0 {
		return nil, err
	}
	nodes, unlisted := nodesSoon(ctx, i, a.answerTime())
	return linesOf(stats, nodes, unlisted == nil, before), errors.Join(err, unlisted)
}

// nodesSoon lists the servers. If the store does not return them within the given time, for example
// because the part that has them can't be reached, the error is errPart.
func nodesSoon(ctx context.Context, i *inspect.Inspector, within time.Duration) ([]inspect.Node, error) {
	brief, stop := context.WithTimeout(ctx, within)
	defer stop()
	nodes, err := i.Nodes(brief)
	switch {
	case err == nil || ctx.Err() != nil || ports.FailureOf(err) == ports.FailureRefused:
		return nodes, err
	case brief.Err() != nil:
		return nil, fmt.Errorf("%w: the servers are not known after %v", errPart, within)
	}
	return nil, fmt.Errorf("%w: the servers are not known: %w", errPart, err)
}

// linesOf returns the lines of stats, the queue with the largest lag first. listed is false if the
// servers are not known. before has the lines of the previous look, for the rates.
func linesOf(stats []inspect.QueueStats, nodes []inspect.Node, listed bool, before []statLine) []statLine {
	lines := make([]statLine, len(stats))
	for at, s := range stats {
		line := statLine{QueueStats: s, done: -1, failed: -1}
		if !listed {
			line.servers = -1
		}
		if !line.reached() {
			line.unowned = -1
		}

		for _, n := range nodes {
			if n.State == inspect.NodeAlive && slices.Contains(n.Queues, s.Queue.Name) {
				line.servers++
			}
		}

		for _, shard := range s.Shards {
			if shard.Owner == "" || shard.ExpiresAt.Before(s.Now) {
				line.unowned++
			}
		}

		line.since(before)
		lines[at] = line
	}
	slices.SortStableFunc(lines, func(a, b statLine) int { return int(min(max(b.Lag-a.Lag, -1), 1)) })
	return lines
}

// since computes the rates since the previous look, if both looks have read the same number of
// shards.
func (s *statLine) since(before []statLine) {
	for at := range before {
		b := &before[at]
		if b.Queue.Name != s.Queue.Name || len(b.Shards) != len(s.Shards) || !s.reached() {
			continue
		}
		if seconds := s.Now.Sub(b.Now).Seconds(); seconds > 0 {
			s.done = max(float64(s.Processed-b.Processed)/seconds, 0)
			s.failed = max(float64(s.Failed-b.Failed)/seconds, 0)
		}
	}
}
