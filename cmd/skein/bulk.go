package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/ports"
)

// bulkFlags select all matching entries instead of named ids, and how an action handles them.
type bulkFlags struct {
	all, fresh bool
	entryFilter
	before, goOn string
	o            inspect.BulkOptions
	yes          bool
	verb, done   string
	has          func(*inspect.Found) bool
	// schedules is true if the action takes the schedules of an id too.
	schedules bool
	// prefixNeeds ends the help of --prefix.
	prefixNeeds string
	set         *pflag.FlagSet
}

// needsIndex ends the help of a --prefix of queued jobs. Jobs with a failure and dead letters are
// always listed by id.
const needsIndex = "; only in a queue with an index of ids"

func (b *bulkFlags) add(f *pflag.FlagSet) {
	b.set = f
	with := ""
	if !b.all { // otherwise the command always acts on all that match
		f.BoolVar(&b.all, "all", false, "act on all that match, not on named ids")
		with = "with --all: "
	}

	if b.verb != "release" { // Release accepts no Prefix
		f.StringVar(&b.o.Prefix, "prefix", "", with+"only ids with this prefix"+b.prefixNeeds)
	}
	b.entryFilter.add(f, with)
	f.StringVar(&b.before, "before", "",
		with+"only jobs first pushed, or dead letters last changed, before this `TIME`; "+
			"an age such as 24h is a TIME too")

	f.IntVar(&b.o.Rate, "rate", 0, with+"at most this many entries a second; 0 is no limit")
	f.BoolVar(&b.o.DryRun, "dry-run", false, with+"change nothing, and show what would change")
	f.BoolVarP(&b.yes, "yes", "y", false, with+"don't ask")
	f.StringVar(&b.goOn, "continue", "",
		with+"continue from this `TEXT`, which the interrupted call has printed; repeat its other flags")
}

// options returns the options of the action on all that match. It returns an error if the flags, or
// the flags and the ids, exclude one another.
func (b *bulkFlags) options(ids []string) (o inspect.BulkOptions, err error) {
	o = b.o
	if b.all = b.all || b.fresh; b.all {
		o.Payloads = -1 // the action selects by ids, times and errors
	}

	for _, name := range []string{"prefix", "error", "tag", "group", "before", "continue"} {
		// The variable of a script may be unset: an empty filter would match everything.
		if f := b.set.Lookup(name); f != nil && f.Changed && f.Value.String() == "" {
			return o, fmt.Errorf("%w: --%s is empty; remove the flag to match everything", errUsage, name)
		}
	}
	if err := b.entryFilter.check(); err != nil {
		return o, err
	}

	switch {
	case b.fresh && len(ids) > 0:
		return o, fmt.Errorf("%w: --fresh acts on all fresh jobs; leave it out, or the ids", errUsage)
	case b.all == (len(ids) > 0):
		return o, fmt.Errorf("%w: name ids, or give --all", errUsage)
	case !b.all && (o.Prefix != "" || o.Group != "" || b.entryFilter != (entryFilter{}) ||
		b.before != "" || o.Rate != 0 || o.DryRun || b.yes || b.goOn != ""):
		return o, fmt.Errorf("%w: --prefix, --error, --tag, --group, --before, --rate, --dry-run, "+
			"--yes and --continue need --all", errUsage)
	case o.Rate < 0:
		return o, fmt.Errorf("%w: --rate %d; give the number of entries a second; 0 is no limit", errUsage, o.Rate)
	case b.goOn != "" && (b.before != "" || o.DryRun):
		return o, fmt.Errorf("%w: --continue keeps the --before of the first call; "+
			"leave out --before and --dry-run", errUsage)
	}

	o.Continue = inspect.Checkpoint(b.goOn)
	o.Filter = b.Text()
	if b.before != "" {
		o.Before, err = parseTime("--before", b.before)
	}
	return o, err
}

// resultColumns are the columns of an action's result, named like the fields of the HTTP API.
var resultColumns = columns[inspect.Result]{
	{"looked_at", false, func(r *inspect.Result) any { return r.Done }},
	{"handled", false, func(r *inspect.Result) any { return r.Handled }},
	{"total", false, func(r *inspect.Result) any { return r.Total }},
	{"later", true, func(r *inspect.Result) any { return r.Later }},
	{"stale", true, func(r *inspect.Result) any { return r.Stale }},
	{"continue", true, func(r *inspect.Result) any { return string(r.Checkpoint) }},
}

// allColumns are the columns of the result of an action on all that match.
var allColumns = slices.Concat(resultColumns[:3], columns[inspect.Result]{
	{"earlier", false, func(r *inspect.Result) any { return r.Earlier }},
	{"gone", false, func(r *inspect.Result) any {
		if r.Gone < 0 {
			return nil
		}
		return r.Gone
	}},
}, resultColumns[3:])

// named shows the result of an action on named ids.
func (a *app) named(done string, r *inspect.Result, err error) error {
	if err != nil && r.Handled == 0 {
		return err
	}
	a.sayStale(r)
	if shown := one(a, resultColumns, r); err != nil || shown != nil {
		return firstOf(err, shown)
	}
	if r.Handled == 0 {
		return fmt.Errorf("%w: no entry of these ids can be %s", errNotFound, done)
	}
	return nil
}

// sayAbsent prints the ids that have no entry for an action.
func (a *app) sayAbsent(done string, ids []string) {
	if len(ids) == 0 {
		return
	}
	names := make([]string, len(ids))
	for at, id := range ids {
		names[at] = quoted(id)
	}
	_, _ = fmt.Fprintf(a.stderr, "no entry can be %s: %s\n", done, strings.Join(names, ", "))
}

// absent returns the ids that have no entry for an action. It is called before the action, which
// may remove entries. An error ends the search: the action gets the same error, and returns it.
func absent(
	ctx context.Context,
	i *inspect.Inspector,
	queue string,
	ids []string,
	lacks lacksEntry,
) (missing []string) {
	for _, id := range ids {
		is, err := lacks(ctx, i, queue, id)
		if err != nil {
			return missing
		}
		if is {
			missing = append(missing, id)
		}
	}
	return missing
}

// lacksEntry reports whether an id has no entry for an action.
type lacksEntry func(ctx context.Context, i *inspect.Inspector, queue, id string) (bool, error)

// lacks is the lacksEntry of the action.
func (b *bulkFlags) lacks(ctx context.Context, i *inspect.Inspector, queue, id string) (bool, error) {
	found, err := i.FindSome(ctx, queue, id, 0)
	if err != nil || b.has(&found) || len(found.Damaged) > 0 {
		return false, err
	}
	if b.schedules {
		o := inspect.ScheduleOptions{ScheduleSelection: inspect.ScheduleSelection{ID: id}, Limit: 1}
		for _, err := range i.Schedules(ctx, queue, o) {
			return false, err
		}
	}
	return true, nil
}

func hasAny(f *inspect.Found) bool     { return f.Queued != nil || f.DeadLetter != nil }
func hasQueued(f *inspect.Found) bool  { return f.Queued != nil }
func hasClaimed(f *inspect.Found) bool { return f.Claimed != nil }
func hasDead(f *inspect.Found) bool    { return f.DeadLetter != nil }

// everything is an action on all that match.
type everything func(context.Context, inspect.BulkOptions) (inspect.Result, error)

// patience is how long a step may run on after a signal or the end of --timeout.
const patience = 10 * time.Second

// errNoStep is the error of an action that a signal or --timeout has ended before its first step.
var errNoStep = fmt.Errorf("%w: a signal or --timeout ended the command before its first step", errNothing)

// onAll acts on all matching entries. It first shows some of them and asks for confirmation, unless
// --yes or --continue is given. A signal stops it before the first step or between two steps.
func (a *app) onAll(ctx context.Context, b *bulkFlags, o inspect.BulkOptions, do everything) error {
	if o.DryRun {
		r, err := do(ctx, o)
		a.sayLater(&r)
		if err == nil {
			_, _ = fmt.Fprintf(a.stderr, "Nothing was changed: %s of %s would be %s; %d of them are shown.\n",
				figures.Exact(int64(r.Handled)), figures.Exact(int64(r.Total)), b.done, len(r.Samples)+len(r.Jobs))
		}
		return firstOf(err, a.showSamples(&r))
	}

	if !b.yes && b.goOn == "" {
		if some, err := a.confirm(ctx, b, o, do); err != nil || !some {
			return err
		}
	}
	if err := ctx.Err(); err != nil {
		return errNoStep
	}

	p := newProgress(a, b.verb, b.done)
	o.Stop = func(int) bool { return ctx.Err() != nil }

	// A step that has begun may finish, so that the counts are exact.
	steps, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(patience, stop) })()

	o.Progress, o.Checkpoint = p.progress, func(c inspect.Checkpoint) {
		if !p.told && ctx.Err() != nil { // between the preparations and the first step
			stop()
			if b.goOn == "" {
				return
			}
		}
		p.checkpoint(c)
	}

	r, err := do(steps, o)
	p.end()
	if b.goOn == "" && !p.told && errors.Is(err, context.Canceled) {
		return errNoStep
	}

	if err == nil && r.Checkpoint == "" && r.Handled == 0 && r.Stale == 0 {
		a.sayNone(b, &r)
	}
	a.sayStale(&r)
	a.sayLater(&r)
	a.sayGone(b, &r, err)
	shown := one(a, allColumns, &r)

	goOn := "" // an action that the store refused before it did anything is not continued, but corrected
	if r.Checkpoint != "" && (r.Done > 0 || err == nil || !ports.FailureOf(err).NoEffect()) {
		goOn = fmt.Sprintf("; to continue, give the same arguments and --continue %s", r.Checkpoint)
	}

	switch {
	case ctx.Err() != nil && goOn != "":
		return fmt.Errorf("%w after %d of %d%s", errStopped, r.Done, r.Total, goOn)
	case err != nil:
		return fmt.Errorf("%w%s", err, goOn)
	}
	return shown
}

// sayNone prints that no entry matches.
func (a *app) sayNone(b *bulkFlags, r *inspect.Result) {
	_, _ = fmt.Fprintf(a.stderr, "%s: none of %s matches; nothing was changed\n", b.verb, figures.Exact(int64(r.Total)))
}

// sayGone prints how many entries earlier calls have handled, and how many were gone.
func (a *app) sayGone(b *bulkFlags, r *inspect.Result, failed error) {
	again := b.goOn != ""
	if again {
		now, atLeast := "", "at least " // an earlier call may have been killed after it printed the --continue text
		switch {
		case failed != nil:
			now = atLeast // its last step may have been carried out
		case r.Checkpoint == "" && r.Gone == 0:
			atLeast = ""
		}
		_, _ = fmt.Fprintf(a.stderr, "%s%s %s now, %s%s by earlier calls, according to the --continue text.\n",
			now, figures.Exact(int64(r.Handled-r.Earlier)), b.done, atLeast, figures.Exact(int64(r.Earlier)))
	}

	switch {
	case failed != nil || r.Checkpoint != "":
	case r.Gone < 0 && again:
		_, _ = fmt.Fprintln(a.stderr, "If a call was killed, the number of entries that it handled "+
			"after printing that text is unknown, "+
			"because --prefix, --group, --before and run-now act on only a part of the total.")
	case r.Gone > r.Later, r.Gone > 0 && again:
		_, _ = fmt.Fprintf(a.stderr, "%s of %s were gone or had changed: "+
			"a killed call, a step whose reply was lost, a server or another operator has handled them.\n",
			figures.Exact(int64(r.Gone)), figures.Exact(int64(r.Total)))
	}
}

// sayStale prints why a revive has left dead letters alone.
func (a *app) sayStale(r *inspect.Result) {
	if r.Stale > 0 {
		_, _ = fmt.Fprintf(a.stderr, "left in the morgue as stale: %d. "+
			"A payload of theirs is not newer than what was done of the id. "+
			"--force revives them, and forgets what was done of these ids.\n", r.Stale)
	}
}

// sayLater prints why existing dead letters were left alone.
func (a *app) sayLater(r *inspect.Result) {
	if r.Later > 0 {
		_, _ = fmt.Fprintf(a.stderr, "%d or more dead letters were left alone: "+
			"they changed after the action began (or after --before), "+
			"or have a time in the future. Name their ids to act on them.\n", r.Later)
	}
}

// previewTime is how long the preview before a question may take.
const previewTime = 2 * time.Second

// confirm shows what the action would do, and asks for confirmation. It reports whether there is
// anything to do. An answer other than yes or y is an error.
func (a *app) confirm(ctx context.Context, b *bulkFlags, o inspect.BulkOptions, do everything) (bool, error) {
	began := time.Now()
	o.DryRun, o.Rate = true, 0
	o.Stop = func(int) bool { return time.Since(began) > previewTime }
	r, err := do(ctx, o)
	if err != nil {
		return false, err
	}

	cutOff := r.Done < r.Total // a dry run has no Checkpoint
	if r.Handled == 0 && !cutOff {
		a.sayNone(b, &r)
		a.sayLater(&r)
		return false, one(a, allColumns, &r)
	}

	if !cutOff {
		_, _ = fmt.Fprintf(a.stderr, "%s: %d match of %d checked, of %d", b.verb, r.Handled, r.Done, r.Total)
	} else {
		_, _ = fmt.Fprintf(a.stderr, "%s: at least %d match, at most %d; %d of %d checked",
			b.verb, r.Handled, r.Handled+r.Total-r.Done, r.Done, r.Total)
	}
	a.sayIDs(sampleIDs(&r))
	_, _ = fmt.Fprintln(a.stderr, ".")

	err = a.ask(ctx, b.done)
	return err == nil, err
}

// sayIDs prints ids as examples.
func (a *app) sayIDs(ids []string) {
	for at, id := range ids {
		_, _ = fmt.Fprint(a.stderr, map[bool]string{true: ", such as ", false: ", "}[at == 0], quoted(id))
	}
}

// ask asks whether entries are to be changed. An answer other than yes or y is an error.
func (a *app) ask(ctx context.Context, done string) error {
	_, _ = fmt.Fprintf(a.stderr, "They will be %s. Type yes or y to continue: ", done)
	answer, err := readLine(ctx, a.stdin)
	if err != nil {
		return err
	}
	if answer != "yes" && answer != "y" {
		return fmt.Errorf("%w: the action was not confirmed; use --yes to act without a question", errNothing)
	}
	return nil
}

// readLine reads a line. It returns errNothing if ctx ends first.
func readLine(ctx context.Context, in interface{ Read([]byte) (int, error) }) (string, error) {
	line := make(chan string, 1)
	go func() {
		var text []byte
		for c := make([]byte, 1); ; {
			n, err := in.Read(c)
			if n > 0 && c[0] != '\n' {
				text = append(text, c[0])
			}
			if err != nil || n > 0 && c[0] == '\n' {
				line <- strings.TrimSpace(string(text))
				return
			}
		}
	}()

	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", fmt.Errorf("%w: a signal or --timeout ended the command "+
			"before the question was answered", errNothing)
	}
}

func sampleIDs(r *inspect.Result) (ids []string) {
	for at := range r.Samples {
		ids = append(ids, r.Samples[at].ID)
	}
	for at := range r.Jobs {
		ids = append(ids, r.Jobs[at].ID)
	}
	return ids[:min(len(ids), 5)]
}

// dryColumns are the first resultColumns, with samples of the matching entries.
var dryColumns = append(append(columns[inspect.Result]{}, resultColumns[:3]...), columns[inspect.Result]{
	{"jobs", false, func(r *inspect.Result) any { return rowsOf(jobColumns, r.Jobs) }},
	{"dead", false, func(r *inspect.Result) any { return rowsOf(deadColumns, r.Samples) }},
}...)

func rowsOf[T any](cols columns[T], items []T) []*object {
	rows := make([]*object, len(items))
	for at := range items {
		rows[at] = cols.row(&items[at])
	}
	return rows
}

func (a *app) showSamples(r *inspect.Result) error { return one(a, dryColumns, r) }

// chosen are the entries on which a command acts: named ids, or all that match if all is true.
type chosen struct {
	all     bool
	ids     []string
	filter  entryFilter
	options inspect.BulkOptions
}

func (c *chosen) jobs(kind service.KindOfJobs) inspect.JobSelection {
	if c.all {
		return kind(c.filter.jobs(), c.options)
	}
	return inspect.JobIDs(c.ids...)
}

func (c *chosen) dead() inspect.DeadLetterSelection {
	if c.all {
		return inspect.AllDead(c.filter.letters(), c.options)
	}
	return inspect.DeadIDs(c.ids...)
}

type (
	act    func(ctx context.Context, i *inspect.Inspector, queue string, c *chosen) (inspect.Result, error)
	onJobs func(*inspect.Inspector, context.Context, string, inspect.JobSelection) (inspect.Result, error)
	onDead func(*inspect.Inspector, context.Context, string, inspect.DeadLetterSelection) (inspect.Result, error)
)

// onJobs returns a command that acts on jobs: on named ones, or on all that match and are of a
// kind.
func (a *app) onJobs(name, short, example, done string, all service.KindOfJobs, on onJobs) *cobra.Command {
	b := &bulkFlags{verb: name, done: done, has: hasQueued, prefixNeeds: needsIndex}
	c := a.bulk(b, name+" QUEUE [ID...]", short, example,
		func(ctx context.Context, i *inspect.Inspector, queue string, c *chosen) (inspect.Result, error) {
			return on(i, ctx, queue, c.jobs(all))
		})
	c.Flags().StringVar(&b.o.Group, "group", "", ofErrorGroup)
	return c
}

// ofErrorGroup is the help of --group of actions on jobs.
const ofErrorGroup = "with --all: only those that have failed for an error of this group; " +
	"skein errors --by-queue lists them"

// onFailedJobs is onJobs for an action whose --all means jobs with a failure, and --fresh the
// others.
func (a *app) onFailedJobs(name, short, example, done string, on onJobs) *cobra.Command {
	b := &bulkFlags{
		verb: name, done: done, has: hasQueued, prefixNeeds: "; with --fresh" + strings.TrimPrefix(needsIndex, ";"),
	}
	c := a.bulk(b, name+" QUEUE [ID...]", short, example,
		func(ctx context.Context, i *inspect.Inspector, queue string, c *chosen) (inspect.Result, error) {
			kind := inspect.FailedJobs
			if b.fresh {
				kind = inspect.FreshJobs
			}
			return on(i, ctx, queue, c.jobs(kind))
		})
	c.Flags().BoolVar(&b.fresh, "fresh", false, "act on all jobs that match and have not failed, not on named ids")
	c.Flags().StringVar(&b.o.Group, "group", "", ofErrorGroup)
	return c
}

// entryFilter is the flags that select entries by their errors and tags.
type entryFilter struct{ service.EntryFilter }

func (m *entryFilter) add(f *pflag.FlagSet, with string) {
	f.StringVar(&m.Error, "error", "", with+"only those whose error contains this `TEXT`")
	f.StringVar(&m.Tag, "tag", "", with+"only those with this `TAG`")
}

// check returns an error for a tag that no job can have.
func (m entryFilter) check() error {
	if m.Tag == "" {
		return nil
	}
	if err := core.ValidateTag(m.Tag); err != nil {
		return fmt.Errorf("%w: --tag: %w", errUsage, err)
	}
	return nil
}

// jobs returns the filter for jobs. It is nil, which matches all jobs, for the zero value.
func (m entryFilter) jobs() func(inspect.QueuedJob) bool {
	if m == (entryFilter{}) {
		return nil
	}
	return func(j inspect.QueuedJob) bool { return m.Holds(j.LastError, j.Tags) }
}

// letters returns the filter for dead letters, nil for all.
func (m entryFilter) letters() func(inspect.DeadLetter) bool {
	if m == (entryFilter{}) {
		return nil
	}
	return func(d inspect.DeadLetter) bool { return m.Holds(d.LastError, d.Tags) }
}

// purge returns the command that removes all queued jobs that match.
func (a *app) purge() *cobra.Command {
	b := &bulkFlags{verb: "purge", done: "removed", has: hasQueued, all: true, prefixNeeds: needsIndex}
	c := a.bulk(
		b,
		"purge QUEUE",
		"Remove all queued jobs that match, failed or not; claimed jobs and dead letters stay",
		"skein queue purge orders --before 24h --dry-run",
		func(ctx context.Context, i *inspect.Inspector, queue string, c *chosen) (inspect.Result, error) {
			return i.Delete(ctx, queue, c.jobs(inspect.AllJobs))
		},
	)

	c.Args = arguments(cobra.ExactArgs(1))
	return c
}

// bulk returns a command that acts on named ids or on all that match.
func (a *app) bulk(b *bulkFlags, use, short, example string, on act) *cobra.Command {
	c := a.command(use, short, example, cobra.MinimumNArgs(1), nil)
	b.add(c.Flags())
	c.RunE = func(cmd *cobra.Command, args []string) error {
		queue, ids := args[0], args[1:]
		o, err := b.options(ids)
		if err != nil {
			return err
		}
		i, err := a.open(cmd.Context())
		if err != nil {
			return err
		}

		if b.all {
			return a.onAll(cmd.Context(), b, o,
				func(ctx context.Context, o inspect.BulkOptions) (inspect.Result, error) {
					return on(ctx, i, queue, &chosen{all: true, filter: b.entryFilter, options: o})
				})
		}

		missing := absent(cmd.Context(), i, queue, ids, b.lacks)
		var replaced []string
		if b.verb == "bury" {
			replaced = replacedErrors(cmd.Context(), i, queue, ids)
		}
		r, err := on(cmd.Context(), i, queue, &chosen{ids: ids})
		if err == nil {
			a.sayAbsent(b.done, missing)
		}
		a.sayReplaced(replaced, &r)
		if b.verb == "run-now" && err == nil && r.Handled == 0 {
			return a.dueAlready(cmd.Context(), queue, ids, &r)
		}
		return a.named(b.done, &r, err)
	}
	return c
}
