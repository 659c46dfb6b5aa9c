package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/errorgroup"
	"github.com/skeinq/skein/ports"
)

// Limits of [Inspector.Errors].
const (
	// MaxErrorEntries is the maximum number of jobs and dead letters that it reads.
	MaxErrorEntries = 10_000
	// ErrorSteps is the number of steps of ErrorGroup.Steps, of ErrorStep each: 24 hours.
	ErrorSteps = 48
	// ErrorStep is the time of a step.
	ErrorStep = 30 * time.Minute
)

// errorBytes is the number of bytes of an error's text that Errors reads. Package errorgroup reads a
// few less, and must see that there are more.
const errorBytes = 1<<10 + 8

// ErrorState is the state of a job or a dead letter that has an error.
type ErrorState string

// The states of jobs and dead letters in [Inspector.Errors].
const (
	// ErrorRetrying is a queued job that has failed and is retried.
	ErrorRetrying ErrorState = "retrying"
	// ErrorHeld is a held job; see QueuedJob.Held.
	ErrorHeld ErrorState = "held"
	// ErrorDead is a dead letter.
	ErrorDead ErrorState = "dead"
)

// ErrorsOptions select what [Inspector.Errors] groups. The zero value is everything.
type ErrorsOptions struct {
	// Queues are the names of the queues. nil means all queues, an empty list means no queue.
	Queues []string
	// States are the states. nil means all states.
	States []ErrorState
	// Since leaves out groups whose last known failure was before it. The zero value means no
	// limit.
	Since time.Time
	// Text limits the groups to those whose name, or the text of one of whose errors, contains it.
	Text string
	// Tag limits the groups to the jobs and dead letters with this tag. All counts are then those of
	// the entries that were read.
	Tag string
	// Limit is the maximum number of groups. 0 means 100.
	Limit int
	// Entries is the maximum number of jobs and dead letters of each group to return: those that were
	// read first, each with its newest failure only. Open limits that to the group with this name.
	// Empty means all groups.
	Entries int
	Open    string
	// Stop is called now and then. If it returns true, no further job or dead letter is read. nil
	// means no call.
	Stop func() bool
}

// Errors is the result of [Inspector.Errors].
type Errors struct {
	// Groups are those with the most entries first.
	Groups []ErrorGroup
	// Total is the number of groups, with those that the limit leaves out.
	Total int
	// Retrying, Held and Dead are the numbers of jobs and dead letters of the selected queues and
	// states, whether they are in a group or not.
	Retrying, Held, Dead int64
	// Read is the number of jobs and dead letters that were read, of Of.
	Read, Of int64
	// Now is the store's clock, the earliest one of the queues. It is zero if there is no queue.
	Now time.Time
}

// ErrorGroup is one error: the jobs that retry because of it or are held for it, and the dead
// letters that it has made, of one or of several queues.
type ErrorGroup struct {
	Name     string `json:"name" class:"error" doc:"the error, in which # stands for numbers, quoted parts and paths"`
	Retrying int64  `json:"retrying" class:"public" doc:"jobs that have failed for it and are retried"`
	Dead     int64  `json:"dead" class:"public" doc:"dead letters"`
	Held     int64  `json:"held" class:"public" doc:"jobs that are held for it"`
	// Sample is true if the group may have more entries than were counted. The counts of dead
	// letters are exact unless a tag was given.
	Sample bool `json:"sample" class:"public" doc:"whether there may be more: not all entries of a state were read"`
	// First is zero if no time is known.
	First time.Time `json:"first,omitzero" class:"public" doc:"the first known failure: of the dead letters since their group was empty, or the earliest last failure of the jobs that were read"`
	// Earlier is true if a job has failed before its last failure, so that the error may be older than
	// First. First then moves when the jobs fail again.
	Earlier bool      `json:"earlier,omitempty" class:"public" wide:"true" doc:"whether the error may be older than first, since of a job that retries the last failure only is counted"`
	Last    time.Time `json:"last,omitzero" class:"public" doc:"the last known failure"`
	// Steps has ErrorSteps elements. The last one ends at Now.
	Steps   []int64      `json:"steps" class:"public" wide:"true" doc:"how many of the entries that were read have failed last in each half hour of the last 24 hours, the oldest first"`
	Parts   []ErrorPart  `json:"parts" class:"public" doc:"its parts, on which actions act: the dead letters and the jobs of a queue are two parts"`
	Entries []ErrorEntry `json:"entries,omitempty" class:"public" wide:"true" doc:"some of its jobs and dead letters, if the request asks for them"`
}

// Queues returns the names of the queues of its parts, each once.
func (g *ErrorGroup) Queues() (names []string) {
	for _, p := range g.Parts {
		if !slices.Contains(names, p.Queue) {
			names = append(names, p.Queue)
		}
	}
	return names
}

// ErrorPart is the part of an [ErrorGroup] that one action can act on: jobs of a queue, or dead
// letters of a queue. A queue with both has two parts, whose values of Group may differ.
type ErrorPart struct {
	Queue string `json:"queue" class:"queue" doc:"the queue"`
	// Group is for BulkOptions.Group.
	Group    string `json:"group" class:"group" doc:"the value of group in lists and actions of the queue"`
	Retrying int64  `json:"retrying" class:"public" doc:"as in the group"`
	Dead     int64  `json:"dead" class:"public" doc:"as in the group"`
	Held     int64  `json:"held" class:"public" doc:"as in the group"`
}

// ErrorEntry is a job or a dead letter of an [ErrorGroup].
type ErrorEntry struct {
	Queue string     `json:"queue" class:"queue" doc:"the queue"`
	ID    string     `json:"id" class:"id" doc:"the entity that it is about"`
	State ErrorState `json:"state" class:"public" doc:"retrying, held or dead"`
	// Retries and PerformAt are those of a job that is retried.
	Retries   int       `json:"retries,omitempty" class:"public" doc:"the number of its failures; absent for a dead letter"`
	PerformAt time.Time `json:"perform_at,omitzero" class:"public" doc:"when the job is due; absent for a held job and a dead letter"`
	LastFailure
	// ChangedAt is that of a dead letter.
	ChangedAt time.Time `json:"changed_at,omitzero" class:"public" doc:"when the dead letter last changed; absent for a job"`
	Tags      []string  `json:"tags,omitempty" class:"tags" doc:"its tags; absent if ids are redacted"`
}

// failedAt returns when the entry failed last, as far as it is known.
func (e *ErrorEntry) failedAt() time.Time {
	if e.LastFailedAt.IsZero() {
		return e.ChangedAt
	}
	return e.LastFailedAt
}

// Errors groups the errors of queues: those of the jobs that retry or are held, and those of the
// dead letters. Errors that differ only in numbers, quoted parts and paths are one group, over all
// queues. A group of dead letters with another name, such as that of ServerOptions.ErrorGroup,
// keeps it, and so do jobs whose error is that of a dead letter of the group.
//
// Stores count dead letters by group, so these counts are exact, for the 1,000 largest groups of
// each queue. Jobs have no such counts. Errors reads at most [MaxErrorEntries] jobs and dead letters,
// shared among the queues and states: the jobs that are due first, the held jobs in order of id, and
// the newest dead letters. If there are more, the counts of jobs are those of a sample, and
// ErrorGroup.Sample is true.
//
// If shards can't be reached, it returns what it has read and a *[PartialError]. For an unknown
// state or a negative number it returns [ErrInvalidOptions].
func (i *Inspector) Errors(ctx context.Context, o ErrorsOptions) (Errors, error) {
	if err := o.check(); err != nil {
		return Errors{}, err
	}

	stats, err := i.statsFor(ctx, o.Queues)
	g := &errorGrouping{
		inspector: i,
		o:         &o,
		rows:      map[string]*errorRow{},
		keys:      map[string]string{},
		cut:       map[string]bool{},
		partly:    map[string]bool{},
	}
	if err = g.without(err); err != nil {
		return Errors{}, err
	}
	lists := g.lists(stats)

	// Groups of dead letters come first, since jobs join them.
	if err := g.count(ctx, stats); err != nil {
		return Errors{}, err
	}
	for at := range lists {
		if err := g.read(ctx, &lists[at]); err != nil {
			return Errors{}, err
		}
	}
	return g.result(), partial(g.unreached)
}

func (o *ErrorsOptions) check() error {
	for _, s := range o.States {
		if s != ErrorRetrying && s != ErrorHeld && s != ErrorDead {
			return fmt.Errorf("%w: there is no state %q; use retrying, held or dead", ErrInvalidOptions, s)
		}
	}
	if o.Limit < 0 || o.Entries < 0 {
		return fmt.Errorf("%w: a limit of %d groups with %d entries of each; neither may be negative",
			ErrInvalidOptions, o.Limit, o.Entries)
	}
	return checkGroup(o.Open)
}

// has reports whether a state is selected.
func (o *ErrorsOptions) has(s ErrorState) bool {
	return o.States == nil || slices.Contains(o.States, s)
}

// statsFor is Stats for queues, of which nil means all and an empty list none.
func (i *Inspector) statsFor(ctx context.Context, queues []string) ([]QueueStats, error) {
	if queues != nil && len(queues) == 0 {
		return nil, nil
	}
	return i.Stats(ctx, queues...)
}

// errorList is a list that Errors reads: the entries of a queue in one state.
type errorList struct {
	queue string
	state ErrorState
	// size is the number of entries, and share is how many of them are read.
	size, share int64
}

// errorRow is a group while it is made.
type errorRow struct {
	ErrorGroup
	parts map[errorKey]*ErrorPart
	// holds is true if the name or an error of the row has the text of the options.
	holds bool
}

// errorKey names a part: a queue, a group, and whether it is of dead letters.
type errorKey struct {
	queue, group string
	dead         bool
}

// errorGrouping is the state of a call of Errors.
type errorGrouping struct {
	inspector *Inspector
	o         *ErrorsOptions
	of        Errors
	rows      map[string]*errorRow
	// cut are the keys of rows that may lack the end of the text.
	cut map[string]bool
	// keys are the keys of rows by the groups of texts, if these differ or were searched for.
	keys map[string]string
	// partly has the queues with a list of jobs that was not read to its end.
	partly    map[string]bool
	stopped   bool
	unreached []core.Shard
}

// without notes the shards that could not be reached, and returns other errors. A queue that was
// forgotten meanwhile is no error if all queues were requested.
func (g *errorGrouping) without(err error) error {
	var lacks *PartialError
	switch {
	case errors.As(err, &lacks):
		g.unreached = mergeShards(g.unreached, lacks.Unreached)
		return nil
	case g.o.Queues == nil && errors.Is(err, ErrUnknownQueue):
		return nil
	}
	return err
}

// lists returns the lists to read, dead letters first, and how much of each.
func (g *errorGrouping) lists(stats []QueueStats) (lists []errorList) {
	of := &g.of
	for at := range stats {
		s := &stats[at]
		if of.Now.IsZero() || s.Now.Before(of.Now) {
			of.Now = s.Now
		}

		for _, l := range []struct {
			state ErrorState
			size  int64
			sum   *int64
		}{
			{ErrorDead, s.Dead, &of.Dead},
			{ErrorRetrying, s.Retrying - s.Held, &of.Retrying},
			{ErrorHeld, s.Held, &of.Held},
		} {
			if g.o.has(l.state) && l.size > 0 {
				*l.sum += l.size
				of.Of += l.size
				lists = append(lists, errorList{queue: s.Queue.Name, state: l.state, size: l.size})
			}
		}
	}

	shareOut(lists, MaxErrorEntries)
	order := map[ErrorState]int{ErrorDead: 0, ErrorRetrying: 1, ErrorHeld: 2}
	slices.SortStableFunc(lists, func(a, b errorList) int {
		return cmp.Compare(order[a.state], order[b.state])
	})
	return lists
}

// shareOut divides a number of entries among lists. Short lists are read whole, and the others get
// equal shares of the rest.
func shareOut(lists []errorList, entries int64) {
	slices.SortStableFunc(lists, func(a, b errorList) int { return cmp.Compare(a.size, b.size) })
	for at := range lists {
		l := &lists[at]
		l.share = min(l.size, entries/int64(len(lists)-at))
		entries -= l.share
	}
}

// row returns the row with a key.
func (g *errorGrouping) row(key string) *errorRow {
	r := g.rows[key]
	if r == nil {
		r = &errorRow{parts: map[errorKey]*ErrorPart{}, holds: strings.Contains(key, g.o.Text)}
		r.Name = key
		r.Steps = make([]int64, ErrorSteps)
		g.rows[key] = r
	}
	return r
}

// part returns the row's part on which actions act.
func (r *errorRow) part(key errorKey) *ErrorPart {
	p := r.parts[key]
	if p == nil {
		p = &ErrorPart{Queue: key.queue, Group: key.group}
		r.parts[key] = p
	}
	return p
}

// span extends the time of the row's failures.
func (r *errorRow) span(first, last time.Time) {
	if r.First.IsZero() || !first.IsZero() && first.Before(r.First) {
		r.First = first
	}
	if last.After(r.Last) {
		r.Last = last
	}
}

// count makes rows of the groups of dead letters. With a tag the dead letters are counted one by
// one instead.
func (g *errorGrouping) count(ctx context.Context, stats []QueueStats) error {
	for at := range stats {
		queue := stats[at].Queue.Name
		if stats[at].Dead == 0 || !g.o.has(ErrorDead) {
			continue
		}

		groups, err := g.inspector.Groups(ctx, queue, ports.MaxPage)
		if err = g.without(err); err != nil {
			return err
		}
		if groups.Total > len(groups.Groups) {
			g.partly[queue] = true
		}
		for _, found := range groups.Groups {
			key, cut := errorgroup.Text(found.Name)
			if cut && g.rows[key] == nil {
				g.cut[key] = true
			}
			r := g.row(key)
			if g.o.Tag != "" {
				continue
			}
			r.part(errorKey{queue, found.Name, true}).Dead += found.Count
			r.span(found.First, found.Last)
		}
	}
	return nil
}

// read reads a list.
func (g *errorGrouping) read(ctx context.Context, l *errorList) error {
	o := ListOptions{Limit: int(l.share), ErrorBytes: errorBytes, MaxCount: -1}
	if g.inspector.views.decodeError != nil {
		o.ErrorBytes = 0 // a part of an encoded text can't be decoded
	}

	read, err := int64(0), error(nil)
	if l.share > 0 && !g.stop() {
		switch l.state {
		case ErrorDead:
			o.Descending = true
			read, err = readErrors(g, l, g.inspector.Morgue(ctx, l.queue, o), deadEntry)
		case ErrorHeld:
			o.Held = true
			read, err = readErrors(g, l, g.inspector.Jobs(ctx, l.queue, o), jobEntry)
		default:
			o.SortBy = RetryingByTime
			read, err = readErrors(g, l, g.inspector.Jobs(ctx, l.queue, o), jobEntry)
		}
	}

	g.of.Read += read
	if read < l.size && (l.state != ErrorDead || g.o.Tag != "") && (l.share < l.size || g.stopped) {
		g.partly[l.queue] = true
	}
	return g.without(err)
}

// readErrors adds the entries of a list. entry returns an entry with the group of a dead letter.
func readErrors[V any](
	g *errorGrouping, l *errorList, list iter.Seq2[V, error], entry func(*V) (ErrorEntry, string),
) (read int64, err error) {
	for v, err := range list {
		if err != nil {
			return read, err
		}

		e, group := entry(&v)
		e.Queue, e.State = l.queue, l.state
		e.Failures = e.Failures[:min(1, len(e.Failures))] // encoded ones are read whole, and so all of them
		if l.state == ErrorRetrying && e.PerformAt.IsZero() {
			continue // it was held meanwhile
		}
		g.add(&e, group)

		if read++; read%stopEvery == 0 && g.stop() {
			break
		}
	}
	return read, nil
}

// stopEvery is the number of entries after which Stop is called.
const stopEvery = 500

// stop reports whether no further entry is to be read.
func (g *errorGrouping) stop() bool {
	g.stopped = g.stopped || g.o.Stop != nil && g.o.Stop()
	return g.stopped
}

func jobEntry(j *QueuedJob) (ErrorEntry, string) {
	e := ErrorEntry{ID: j.ID, Retries: j.Retries, LastFailure: j.LastFailure, Tags: j.Tags}
	if !j.Held {
		e.PerformAt = j.PerformAt
	}
	return e, ""
}

func deadEntry(d *DeadLetter) (ErrorEntry, string) {
	return ErrorEntry{ID: d.ID, ChangedAt: d.ChangedAt, LastFailure: d.LastFailure, Tags: d.Tags}, d.Group
}

// add adds an entry to its row.
func (g *errorGrouping) add(e *ErrorEntry, group string) {
	if g.o.Tag != "" && !slices.Contains(e.Tags, g.o.Tag) {
		return
	}

	r := g.place(e, group)
	r.holds = r.holds || strings.Contains(e.LastError, g.o.Text)
	r.span(e.failedAt(), e.failedAt())
	r.Earlier = r.Earlier || e.State != ErrorDead && e.Retries > 1
	if ago := g.of.Now.Sub(e.failedAt()); ago < ErrorSteps*ErrorStep {
		r.Steps[ErrorSteps-1-int(max(0, ago)/ErrorStep)]++
	}

	if len(r.Entries) < g.o.Entries && (g.o.Open == "" || g.o.Open == r.Name) {
		r.Entries = append(r.Entries, *e)
	}
}

// place returns the row of an entry, in which it is counted.
func (g *errorGrouping) place(e *ErrorEntry, group string) *errorRow {
	byText := errorgroup.Of("", e.LastError)
	if e.State != ErrorDead {
		r := g.row(g.keyOf(byText))
		p := r.part(errorKey{e.Queue, byText, false})
		if e.State == ErrorHeld {
			p.Held++
		} else {
			p.Retrying++
		}
		return r
	}

	key, _ := errorgroup.Text(group)
	r := g.row(key)
	if g.o.Tag != "" {
		r.part(errorKey{e.Queue, group, true}).Dead++
	}

	// Jobs with the same error join the row, unless the group is not about an error.
	if _, known := g.keys[byText]; !known && !slices.Contains(errorlessGroups, group) {
		g.keys[byText] = key
	}
	return r
}

// errorlessGroups are the groups whose dead letters don't share an error.
var errorlessGroups = []string{core.BuriedByHand, core.RecoveredGroup, core.OtherGroup}

// keyOf returns the key of the row to which the text of a job belongs, given the group of the text.
func (g *errorGrouping) keyOf(byText string) string {
	if key, known := g.keys[byText]; known {
		return key
	}

	key := byText
	if g.rows[byText] == nil {
		for n := len(byText) - 1; n > 0; n-- { // the longest beginning
			if g.cut[byText[:n]] {
				key = byText[:n]
				break
			}
		}
	}
	g.keys[byText] = key
	return key
}

// result returns the rows.
func (g *errorGrouping) result() Errors {
	of := &g.of
	for _, r := range g.rows {
		for _, p := range r.parts {
			r.Parts = append(r.Parts, *p)
			r.Retrying, r.Dead, r.Held = r.Retrying+p.Retrying, r.Dead+p.Dead, r.Held+p.Held
			r.Sample = r.Sample || g.partly[p.Queue]
		}
		if !r.holds || len(r.Parts) == 0 || !r.Last.IsZero() && r.Last.Before(g.o.Since) {
			continue
		}

		slices.SortFunc(r.Parts, func(a, b ErrorPart) int {
			return cmp.Or(cmp.Compare(a.Queue, b.Queue), cmp.Compare(b.Dead, a.Dead), cmp.Compare(a.Group, b.Group))
		})
		of.Groups = append(of.Groups, r.ErrorGroup)
	}

	slices.SortFunc(of.Groups, func(a, b ErrorGroup) int {
		return cmp.Or(cmp.Compare(b.size(), a.size()), b.Last.Compare(a.Last), cmp.Compare(a.Name, b.Name))
	})
	of.Total = len(of.Groups)
	of.Groups = of.Groups[:min(of.Total, cmp.Or(g.o.Limit, ports.DefaultPage))]
	return *of
}

func (g *ErrorGroup) size() int64 { return g.Retrying + g.Dead + g.Held }
