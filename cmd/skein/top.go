package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/wrong"
	"github.com/skeinq/skein/ports"
)

func (a *app) topCommand() *cobra.Command {
	interval := 2 * time.Second
	c := a.command(
		"top [QUEUE...]",
		"Show problems, queues and servers live, and act by keys (? lists the keys); "+
			"programs use wrong, and stats --watch",
		"skein top",
		cobra.ArbitraryArgs,
		func(ctx context.Context, i *inspect.Inspector, queues []string) error {
			if !a.asTable() {
				return fmt.Errorf("%w: top shows tables; use wrong -o %[2]s, or stats --watch -o %[2]s",
					errUsage, a.output)
			}
			if interval <= 0 {
				return fmt.Errorf("%w: --interval %v; give more than 0", errUsage, interval)
			}

			t := &top{inspector: i, queues: queues, answerTime: a.answerTime()}
			if terminal(a.stdin) && terminal(a.screen) {
				return a.liveTop(ctx, t, interval)
			}
			return a.watch(ctx, interval, func() (show func() error) {
				t.look(ctx)
				return func() error { return a.showTop(t) }
			})
		},
	)

	c.Flags().DurationVar(&interval, "interval", interval,
		"the time between two reads; after a slow read 99 times as long as that read, 15s at most")
	return c
}

// top is the result of the last look, with what the next look needs of it.
type top struct {
	inspector  *inspect.Inspector
	queues     []string
	answerTime time.Duration

	lines  []statLine
	nodes  []inspect.Node
	wrong  []wrong.Line
	failed error
	// refused is set if the store refused the last look. Then failed is the reason, and there is
	// nothing to show.
	refused bool
	// seen is when lines were read, by this machine's clock. old is set if the last look could not
	// read them.
	seen time.Time
	old  bool
	// took is the duration of the last look.
	took time.Duration

	memory wrong.Memory
	// first is the time of the first look. Faults that it saw may have begun earlier.
	first time.Time
	// recent has the minutes of the last hour of each queue, last its jobs that wait for their last
	// retry, suspects its claimed jobs that may crash their servers, and ticks what is known of its
	// schedules. All were read at read.
	recent   map[string][]inspect.MinuteStats
	last     map[string]wrong.LastRetry
	suspects map[string]wrong.Suspects
	ticks    map[string]wrong.Ticks
	read     time.Time
	// pauses are the actions that paused the queues that are paused. They were searched at searched.
	pauses   map[string]inspect.Action
	searched time.Time
}

// recentRest is the shortest time between two reads of recent and the like, and between two
// searches for pauses.
const recentRest = 10 * time.Second

// topPatience is how long a look or an action may take. The page reports a store that does not
// answer only after the look has ended.
const topPatience = 10 * time.Second

// look reads the store. Parts that can't be read stay as they were, and failed has the errors.
func (t *top) look(ctx context.Context) {
	began := time.Now()
	defer func() { t.took = time.Since(began) }()
	ctx, stop := context.WithTimeout(ctx, topPatience)
	defer stop()

	stats, err := t.inspector.Stats(ctx, t.queues...)
	t.failed = err
	blind := err != nil && len(stats) == 0
	if t.refused = blind && ports.FailureOf(err) == ports.FailureRefused; t.refused {
		return
	}

	v := wrong.View{Now: time.Now(), NodesUnknown: true}
	if partial := new(inspect.PartialError); errors.As(err, &partial) {
		v.Unreached = partial.Unreached
	}

	if blind {
		v.Silence = err.Error() // the other calls would not be answered either
	} else {
		t.seen = v.Now
		t.ask(ctx, &v, stats)
	}

	t.old = v.Silence != ""
	for at := range t.lines {
		v.Stats = append(v.Stats, t.lines[at].QueueStats)
	}
	if t.first.IsZero() {
		t.first = v.Now
	}

	t.wrong, t.memory = wrong.Now(&v, t.memory)
}

// since returns when a fault began. It is zero if that is unknown: the first look saw the fault,
// and nothing in the store shows its beginning.
func (t *top) since(l *wrong.Line) time.Time {
	if l.Seen && l.Since.Equal(t.first) {
		return time.Time{}
	}
	return l.Since
}

// ask reads what the page shows beside stats, the sizes of the queues. Its errors concern only
// parts of the page, and are added to failed.
func (t *top) ask(ctx context.Context, v *wrong.View, stats []inspect.QueueStats) {
	nodes, unlisted := nodesSoon(ctx, t.inspector, t.answerTime)
	if unlisted == nil {
		lastGoneFirst(nodes)
		t.nodes = nodes
	}
	listed := t.nodes != nil || unlisted == nil // otherwise the servers have never been read
	t.lines = linesOf(stats, t.nodes, listed, t.lines)

	checks, unchecked := t.inspector.Checks(ctx)
	for at := range stats {
		if now := stats[at].Now; !now.IsZero() {
			v.Now = now
		}
	}

	v.Nodes, v.NodesUnknown, v.Checks = t.nodes, unlisted != nil, checks
	t.failed = errors.Join(t.failed, unlisted)
	if unchecked != nil {
		t.failed = errors.Join(t.failed, fmt.Errorf("%w: the store's checks are not known: %w", errPart, unchecked))
	}

	t.details(ctx, v.Now)
	t.findPauses(ctx, stats)
	v.Rates = t.rateWaits(ctx, stats)
	v.Recent, v.LastRetries, v.Suspects, v.Ticks, v.Pauses = t.recent, t.last, t.suspects, t.ticks, t.pauses
}

// rateWaits returns how long the rates of late queues allow no start.
func (t *top) rateWaits(ctx context.Context, stats []inspect.QueueStats) map[string]inspect.RateWait {
	queues := wrong.RatedQueues(stats, t.nodes)
	if len(queues) == 0 {
		return nil
	}
	waits, err := t.inspector.RateWaits(ctx, t.nodes, queues...)
	if err != nil {
		t.failed = errors.Join(t.failed, fmt.Errorf("%w: what the rates of queues allow is not known: %w", errPart, err))
	}
	return waits
}

// findPauses searches the audit for the actions that paused the paused queues, if one of them is
// not known. A search may find none: the audit keeps only the newest actions.
func (t *top) findPauses(ctx context.Context, stats []inspect.QueueStats) {
	known, unknown := map[string]inspect.Action{}, false
	for at := range stats {
		q := &stats[at].Queue
		if a, found := t.pauses[q.Name]; q.Paused && found {
			known[q.Name] = a
		} else if q.Paused {
			unknown = true
		}
	}
	if t.pauses = known; !unknown || time.Since(t.searched) < recentRest {
		return
	}

	pauses, err := wrong.PausesOf(stats, t.inspector.Actions(ctx, inspect.ActionsOptions{}))
	t.searched = time.Now()
	if err != nil {
		t.failed = errors.Join(t.failed, fmt.Errorf("%w: who paused queues is not known: %w", errPart, err))
		return
	}
	t.pauses = pauses
}

// lateTicks returns how late the ticks of queues are. Queues without a next tick are missing.
func (t *top) lateTicks(ctx context.Context) map[string]inspect.LateTick {
	late, err := t.inspector.LateTicks(ctx)
	if partial := new(inspect.PartialError); err != nil && !errors.As(err, &partial) {
		t.failed = errors.Join(t.failed,
			fmt.Errorf("%w: how late the ticks of schedules are is not known: %w", errPart, err))
		return nil
	}
	return late
}

// details reads recent, last, suspects and ticks again if they are older than recentRest. A queue
// whose details can't be read is missing in them.
func (t *top) details(ctx context.Context, now time.Time) {
	if time.Since(t.read) < recentRest {
		return
	}

	n := len(t.lines)
	t.recent, t.last, t.read =
		make(map[string][]inspect.MinuteStats, n), make(map[string]wrong.LastRetry, n), time.Now()
	t.suspects, t.ticks = make(map[string]wrong.Suspects), make(map[string]wrong.Ticks)
	late := t.lateTicks(ctx)
	for at := range t.lines {
		stats := &t.lines[at].QueueStats
		name := stats.Queue.Name
		minutes, err := t.inspector.History(ctx, name,
			inspect.HistoryOptions{From: now.Add(-time.Hour).Truncate(time.Minute)})
		if err == nil {
			t.recent[name] = minutes
		} else {
			t.failed = errors.Join(t.failed, fmt.Errorf("%w: the last hour of %s is not known: %w", errPart, name, err))
		}

		if o, ok := wrong.LastRetryList(stats, t.nodes); ok && ctx.Err() == nil {
			if t.last[name], err = wrong.LastRetryOf(o, t.inspector.Jobs(ctx, name, o)); err != nil {
				t.failed = errors.Join(t.failed,
					fmt.Errorf("%w: the retries of %s are not known: %w", errPart, name, err))
			}
		}

		if o, ok := wrong.SuspectsList(stats, t.nodes); ok && ctx.Err() == nil {
			if t.suspects[name], err = wrong.SuspectsOf(t.inspector.Claimed(ctx, name, o)); err != nil {
				t.failed = errors.Join(t.failed,
					fmt.Errorf("%w: the recoveries of the claimed jobs of %s are not known: %w", errPart, name, err))
			}
		}

		if tick, scheduled := late[name]; scheduled && ctx.Err() == nil {
			t.ticks[name] = t.schedules(ctx, name, tick, now)
		}
		if ctx.Err() != nil {
			break // the other queues would only repeat the error
		}
	}
}

// schedules returns what is known of the schedules of a queue: of each name the first, and a page
// of all.
func (t *top) schedules(ctx context.Context, queue string, tick inspect.LateTick, now time.Time) wrong.Ticks {
	names, failed := t.inspector.ScheduleNames(ctx, queue, "", 0)
	var page []inspect.Schedule
	for s, err := range t.inspector.Schedules(ctx, queue, inspect.ScheduleOptions{Limit: ports.MaxSchedulesPage}) {
		if failed = cmp.Or(failed, err); err == nil {
			page = append(page, s)
		}
	}
	if failed != nil && !isPartial(failed) {
		t.failed = errors.Join(t.failed,
			fmt.Errorf("%w: the schedules of %s are not known: %w", errPart, queue, failed))
	}
	return wrong.TicksOf(tick, now, names.Names, page...)
}

// mostWrong is the largest number of faults that are shown, the worst ones first, so that the
// queues stay visible.
const mostWrong = 6

func (a *app) showTop(t *top) error {
	if t.refused {
		return t.failed
	}

	if len(t.wrong) > 0 {
		shown := t.wrong[:min(len(t.wrong), mostWrong)]
		if err := list(a, t.wrongColumns(), all(shown, nil)); err != nil {
			return err
		}
		if more := len(t.wrong) - len(shown); more > 0 {
			_, _ = fmt.Fprintf(a.stdout, "and %d more\n", more)
		}
		_, _ = fmt.Fprintln(a.stdout)
	}

	if t.old && !t.seen.IsZero() {
		_, _ = fmt.Fprintf(a.stdout, "these figures are old: the store has not answered for %v, since %s\n\n",
			time.Since(t.seen).Round(time.Second), t.seen.UTC().Format(time.RFC3339))
	}

	defer a.narrowed()() // only now, because faults must not be truncated
	if err := list(a, watchColumns, all(t.lines, nil)); err != nil {
		return err
	}

	_, _ = fmt.Fprintln(a.stdout)
	return errors.Join(list(a, nodeColumns, all(t.nodes, nil)), t.failed)
}
