package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

var jobColumns = fieldColumns[inspect.QueuedJob]().moved("last_error", "payload_count").
	with("perform_at", func(j *inspect.QueuedJob) any { return dueTime{j.PerformAt, j.Held} })

var claimedColumns = fieldColumns[inspect.ClaimedJob]().moved("last_error", "payload_count").
	with("perform_at", func(j *inspect.ClaimedJob) any { return dueTime{j.PerformAt, j.Held} })

// payloadColumns are the columns of a payload in a list. Bytes that are not text are in Base64.
var payloadColumns = append(
	within(fieldColumns[service.Payload](), func(p *inspect.StoredPayload) *service.Payload {
		return &service.Payload{Score: p.Score, Data: p.Data, Meta: p.Meta}
	}),
	column[inspect.StoredPayload]{"cursor", true, func(p *inspect.StoredPayload) any { return p.Cursor.String() }},
)

var foundColumns = append(
	columns[inspect.Found]{
		{"queue", false, func(f *inspect.Found) any { return f.Shard.Queue }},
		{"id", false, func(f *inspect.Found) any { return f.ID }},
	},
	fieldColumns[inspect.Found]().
		with("queued", func(f *inspect.Found) any { return jobColumns.row(f.Queued) }).
		with("claimed", func(f *inspect.Found) any { return claimedColumns.row(f.Claimed) }).
		with("dead", func(f *inspect.Found) any { return deadColumns.row(f.DeadLetter) }).
		with("past", func(f *inspect.Found) any { return pastColumns.row(f.Past) })...,
)

func (a *app) jobCommand() *cobra.Command {
	c := group("job", "Show jobs, push them, and act on them",
		a.listJobs(), a.getJob(), a.listPayloads(), a.listPast(), a.why(), a.push(),
		a.onJobs(
			"run-now",
			"Make queued jobs due: --all takes delayed jobs too, --all with --error only failed ones; "+
				"held jobs are released",
			"skein job run-now orders --all --error timeout --rate 100",
			"made due",
			inspect.AllJobs,
			(*inspect.Inspector).RunNow,
		),
		a.onJobs(
			"release",
			"Release held jobs: they are due and have all their retries again; "+
				"a queued job that is not held only becomes due",
			"skein job release ledger account-7",
			"released",
			inspect.AllJobs,
			(*inspect.Inspector).Release,
		),
		a.cancelJobs(),
		a.onFailedJobs(
			"bury",
			"Move queued jobs to the morgue, with all payloads: "+
				"--all takes jobs that have failed, held ones too, --fresh the others",
			"skein job bury orders 42 43",
			"buried",
			(*inspect.Inspector).Bury,
		),
		a.onFailedJobs(
			"rm",
			"Remove queued jobs, with all payloads; --all takes only jobs that have failed, held ones too, "+
				"--fresh only those that have not",
			"skein job rm orders 42",
			"removed",
			(*inspect.Inspector).Delete,
		),
		a.onFirst(
			"bury-first",
			"Move the first payload of a queued job to the morgue; a held job continues with the others. "+
				"By the merge rule every, a second call takes the next payload if it has the same bytes",
			`skein job bury-first ledger account-7 '{"number":17,"amount":-70}'`,
			"buried",
			(*inspect.Inspector).Bury,
		),
		a.onFirst(
			"rm-first",
			"Remove the first payload of a queued job; a held job continues with the others. "+
				"By the merge rule every, a second call takes the next payload if it has the same bytes",
			`skein job rm-first ledger account-7 '{"number":17,"amount":-70}'`,
			"removed",
			(*inspect.Inspector).Delete,
		),
		a.moveJobs(),
		a.edit(
			"Replace a payload of a queued job; its time, its retries and its failure stay",
			"skein job edit orders 42 --payload-file corrected.json --reason 'wrong sum'",
			queuedEdit(),
		),
		a.track(
			"track",
			"Track an id: skein job tracked and the dashboard show it with the reason why its job does not run",
			(*inspect.Inspector).Track,
		),
		a.track("untrack", "End the tracking of an id", (*inspect.Inspector).Untrack),
		a.tracked(),
	)

	c.Long = c.Short + ".\n\nAn ID that begins with - goes behind --: skein job get orders -- -1"
	return c
}

// onFirst returns a command that acts on the first payload of a queued job. The operator names that
// payload. If a push has put another payload first meanwhile, nothing changes.
func (a *app) onFirst(name, short, example, done string, on onJobs) *cobra.Command {
	return a.command(name+" QUEUE ID PAYLOAD", short, example, cobra.ExactArgs(3),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			queue, first := args[0], inspect.FirstPayload{ID: args[1], Data: []byte(args[2])}
			var replaced []string
			if name == "bury-first" {
				replaced = replacedErrors(ctx, i, queue, []string{first.ID})
			}

			r, err := on(i, ctx, queue, inspect.FirstPayloads(first))
			if err == nil && r.Handled == 0 {
				return fmt.Errorf("%w: queue %s has no queued job of the id %q whose first payload is %q; "+
					"skein job payloads lists them",
					errNotFound, args[0], args[1], args[2])
			}
			a.sayReplaced(replaced, &r)
			return a.named(done, &r, err)
		})
}

// replacedErrors returns, for each id whose burial replaces the error of its dead letter, a text
// with that error. The payload that came to the morgue last gives a dead letter its error.
func replacedErrors(ctx context.Context, i *inspect.Inspector, queue string, ids []string) (texts []string) {
	for _, id := range ids {
		found, err := i.FindSome(ctx, queue, id, 0)
		if err != nil {
			return texts // the burial gets the same error
		}
		if found.Queued == nil || found.DeadLetter == nil ||
			found.DeadLetter.LastError == cmp.Or(found.Queued.LastError, core.BuriedByHand) {
			continue
		}
		texts = append(texts, fmt.Sprintf("the burial replaces the earlier error of the dead letter %s: %s",
			quoted(id), quoted(core.CutText(found.DeadLetter.LastError, 400))))
	}
	return texts
}

// sayReplaced prints the texts of replacedErrors, unless nothing was buried.
func (a *app) sayReplaced(texts []string, r *inspect.Result) {
	if r.Handled == 0 {
		return
	}
	for _, text := range texts {
		_, _ = fmt.Fprintln(a.stderr, text)
	}
}

func (a *app) listJobs() *cobra.Command {
	claimed := false
	var l listFlags
	c := a.command(
		"ls QUEUE",
		"List queued or claimed jobs",
		"skein job ls orders --sort retries --desc --limit 20",
		cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			o, err := l.options()
			if err != nil {
				return err
			}
			before, err := l.filter(&o)
			if err != nil {
				return err
			}

			match := func(j *inspect.QueuedJob) bool {
				return l.Holds(j.LastError, j.Tags) && (before.IsZero() || j.FirstPush.Before(before))
			}

			if claimed && l.o.Prefix != "" {
				return fmt.Errorf("%w: --claimed lists jobs in the order of their claims, so it has no --prefix; "+
					"leave --prefix out", errUsage)
			}

			if claimed {
				return listEntries(a, claimedColumns, &l, i.Claimed(ctx, args[0], o),
					func(j *inspect.ClaimedJob) bool { return match(&j.QueuedJob) }, "jobs")
			}
			return listEntries(a, jobColumns, &l, i.Jobs(ctx, args[0], o), match, "jobs")
		},
	)

	l.add(c.Flags())
	c.Flags().StringVar(&l.sort, "sort", "",
		"time, when they may run; id, only with an index of ids; of jobs with a failure: retrying, by time; "+
			"retrying_id, by id; retries, by the number of failures (default time, with --prefix id)")
	c.Flags().StringVar(&l.o.Prefix, "prefix", "", "only ids with this prefix, in lists by id; without --claimed")
	c.Flags().BoolVar(&l.o.Fresh, "fresh", false, "only jobs without a failure")
	c.Flags().BoolVar(&l.o.Held, "held", false,
		"only jobs that are held after their last retry, by id; without --prefix, --fresh, --desc and --from")
	c.Flags().BoolVar(&claimed, "claimed", false, "list claimed jobs, in the order of their claims; without --prefix")
	return c
}

func (a *app) getJob() *cobra.Command {
	return a.command(
		"get QUEUE ID",
		"Show what a queue holds for an id: queued, claimed and dead, with the first 1,000 payloads, "+
			"and its last run that was done, if the queue keeps records",
		"skein job get orders 42 -o json",
		cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			found, err := i.Find(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			if nothing(&found) && found.Past == nil {
				return nothingBut(ctx, i, args[0], args[1])
			}

			return one(a, foundColumns, &found)
		},
	)
}

// places are the values of --place.
var places = map[string]inspect.Place{
	"queued":  inspect.PlaceQueued,
	"claimed": inspect.PlaceClaimed,
	"dead":    inspect.PlaceDead,
}

func (a *app) listPayloads() *cobra.Command {
	place, after := "", ""
	var o inspect.PayloadOptions
	c := a.command(
		"payloads QUEUE ID",
		"List the payloads of an id, lowest score first",
		"skein job payloads orders 42 --place dead -o json",
		cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) (err error) {
			var known bool
			if o.Place, known = places[place]; !known {
				return fmt.Errorf("%w: --place %s; give queued, claimed or dead", errUsage, place)
			}
			if o.After, err = inspect.ParsePayloadCursor(after); err != nil {
				return err
			}

			found, err := i.FindSome(ctx, args[0], args[1], 0)
			if err != nil {
				return err
			}
			if nothing(&found) {
				return nothingBut(ctx, i, args[0], args[1])
			}

			limit := o.Limit
			o.Limit = oneMore(limit)
			return listLimited(a, payloadColumns, i.Payloads(ctx, args[0], args[1], o), limit, "payloads")
		},
	)

	c.Flags().StringVar(&place, "place", "queued", "where: queued, claimed or dead")
	c.Flags().StringVar(&after, "after", "", "begin after the row with this `CURSOR`, which -o wide and json show")
	c.Flags().IntVar(&o.Limit, "limit", 100, "the largest number of rows; 0 is no limit")
	return c
}

// nothing reports whether no job and no dead letter is stored for an id, not even an unreadable one.
func nothing(f *inspect.Found) bool {
	return f.Queued == nil && f.Claimed == nil && f.DeadLetter == nil && len(f.Damaged) == 0
}

func nothingFor(queue, id string) error {
	return fmt.Errorf("%w: queue %s has no job and no dead letter of the id %q", errNotFound, queue, id)
}

// nothingBut is nothingFor, with the first schedules of the id if it has some. If they can't be
// read, it leaves them out.
func nothingBut(ctx context.Context, i *inspect.Inspector, queue, id string) error {
	const shown = 3
	var names []string
	o := inspect.ScheduleOptions{ScheduleSelection: inspect.ScheduleSelection{ID: id}, Limit: shown + 1}
	for s, err := range i.Schedules(ctx, queue, o) {
		if err == nil {
			names = append(names, s.Name)
		}
	}

	switch err := nothingFor(queue, id); {
	case len(names) == 0:
		return err
	case len(names) == 1:
		return fmt.Errorf("%w; it has the schedule %s: skein schedule show %s %[2]s --id %[4]q",
			err, names[0], queue, id)
	case len(names) > shown:
		names = append(names[:shown], "…")
		fallthrough
	default:
		return fmt.Errorf("%w; it has the schedules %s: skein schedule ls %s --id %q",
			err, strings.Join(names, ", "), queue, id)
	}
}

func (a *app) why() *cobra.Command {
	return a.command(
		"why QUEUE ID",
		"Explain why the job of an id does not run, or that it runs",
		"skein job why orders 42",
		cobra.ExactArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			v, err := i.Why(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			if nothing(&v.Found) && v.Found.Past == nil && len(v.Schedules) == 0 {
				return nothingFor(args[0], args[1])
			}

			if a.output == "table" {
				return a.showVerdict(&v)
			}
			return one(a, verdictColumns, &v)
		},
	)
}

func (a *app) cancelJobs() *cobra.Command {
	drop := false
	c := a.command(
		"cancel QUEUE ID...",
		"Cancel claimed jobs: their handlers' contexts end, and unfinished jobs are queued again",
		"skein job cancel orders 42 --drop",
		cobra.MinimumNArgs(2),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			mode := inspect.CancelModePutBack
			if drop {
				mode = inspect.CancelModeDrop
			}

			missing := absent(ctx, i, args[0], args[1:], (&bulkFlags{has: hasClaimed}).lacks)
			r, err := i.Cancel(ctx, args[0], args[1:], mode)
			if err == nil {
				a.sayAbsent("cancelled", missing)
			}
			return a.named("cancelled", &r, err)
		},
	)

	c.Flags().BoolVar(&drop, "drop", false, "remove the jobs once their handlers have returned")
	return c
}

// dueAlready shows the result of run-now if it has changed no job: the queued jobs of these ids, if
// there are any, are due already.
func (a *app) dueAlready(ctx context.Context, queue string, ids []string, r *inspect.Result) error {
	for _, id := range ids {
		found, err := a.inspector.FindSome(ctx, queue, id, 0)
		if err != nil {
			return err
		}
		if found.Queued != nil {
			return one(a, resultColumns, r)
		}
	}
	return a.named("made due", r, nil)
}
