package skein

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/specs"
	"github.com/skeinq/skein/ports"
)

// ScheduleSet is the schedules that a program declares at its start: see
// [ServerOptions].Schedules. The zero value declares none.
type ScheduleSet struct {
	// Name identifies the set in the store, such as "billing": 1 to 128 ASCII letters, digits and
	// "_-.:". A set without schedules needs a Name only to prune.
	Name string
	// Version is the version of the set. Raise it with each change of the schedules. A program that
	// declares a lower version than a queue has changes nothing in that queue, so an old process
	// that starts again during a deployment does not turn schedules back. With the same version, a
	// change that an operator has made to a schedule stays, and otherwise the last program wins. A
	// higher version replaces what operators have changed. No version pauses or resumes a schedule.
	Version int64
	// Schedules are the schedules of the set, made by [Queue.NewSchedule].
	Schedules []Schedule
	// Prune removes the schedules of the set that are stored and not in Schedules. It removes none of
	// a higher version, and none of another set.
	Prune bool
}

// check returns all mistakes of the set in one error.
func (set *ScheduleSet) check() error {
	var errs []error
	if set.Name == "" && (len(set.Schedules) > 0 || set.Prune || set.Version != 0) {
		errs = append(errs, fmt.Errorf(
			"%w: the ScheduleSet has no Name; give it one that does not change", ErrInvalidOptions,
		))
	}
	if set.Name != "" {
		if err := (core.ScheduleKey{ID: "any", Name: set.Name}).Validate(); err != nil {
			errs = append(errs, fmt.Errorf("the Name of the ScheduleSet: %w", err))
		}
	}
	if set.Version < 0 {
		errs = append(errs, fmt.Errorf(
			"%w: Version %d of the ScheduleSet; give 0 or more", ErrInvalidOptions, set.Version,
		))
	}

	type place struct {
		queue string
		key   core.ScheduleKey
	}
	seen := make(map[place]bool)
	for i := range set.Schedules {
		s := &set.Schedules[i]
		at := place{s.target.name, s.core.ScheduleKey}
		switch {
		case s.err != nil:
			errs = append(errs, s.err)
		case s.target.name == "":
			errs = append(errs, fmt.Errorf(
				"%w: schedule %d of the set is empty; make it with Queue.NewSchedule", ErrInvalidOptions, i+1,
			))
		case seen[at]:
			errs = append(errs, fmt.Errorf(
				"%w: the set has two schedules %q of id %q in queue %q; give one another name",
				ErrInvalidOptions, s.core.Name, s.core.ID, s.target.name))
		}
		seen[at] = true
	}
	return errors.Join(errs...)
}

// awaitSchedules declares the server's set. It waits for a store that can't be reached or has no
// room, until ctx ends.
func (s *Server) awaitSchedules(ctx context.Context) error {
	for logged := (time.Time{}); ; {
		err := s.declareSchedules(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case err == nil || ports.FailureOf(err) == ports.FailureRefused:
			return err
		}

		if now := time.Now(); now.Sub(logged) >= time.Minute {
			logged = now
			s.options.Logger.Warn("the schedules of this program can't be declared; retrying until the store answers",
				"set", s.options.Schedules.Name, "error", err)
		}
		select {
		case <-time.After(s.options.PollInterval):
		case <-ctx.Done():
		}
	}
}

// declareSchedules declares the server's set.
func (s *Server) declareSchedules(ctx context.Context) error {
	set := &s.options.Schedules
	if set.Name == "" {
		return nil
	}
	store := boundedCalls{s.store, max(s.options.LeaseTTL, minCallTime)}
	client := NewClient(store, ClientOptions{})
	outdated, err := set.declare(ctx, client)
	if err != nil {
		return fmt.Errorf("declare the schedules of set %q: %w", set.Name, err)
	}
	if set.Prune {
		if err := set.prune(ctx, client, store); err != nil && ctx.Err() == nil {
			s.options.Logger.Warn("schedules that this program no longer declares may be left; its next start removes them",
				"set", set.Name, "error", err)
		}
	}
	if outdated > 0 {
		s.options.Logger.Warn("the store has a higher version of the schedules that this program declares; they are left as they are",
			"set", set.Name, "version", set.Version, "schedules", outdated)
	}
	return nil
}

// declare declares the schedules of the set, queue by queue. It returns how many of them it has
// left as they are, because their queue has a higher version of the set.
func (set *ScheduleSet) declare(ctx context.Context, c *Client) (outdated int, err error) {
	var queues []target
	byQueue := make(map[string][]core.Declaration)
	for i := range set.Schedules {
		s := &set.Schedules[i]
		if byQueue[s.target.name] == nil {
			queues = append(queues, s.target)
		}
		d := s.core
		d.Set, d.Version = set.Name, set.Version
		byQueue[s.target.name] = append(byQueue[s.target.name], d)
	}
	for _, t := range queues {
		n, err := c.declareSchedules(ctx, t, byQueue[t.name])
		if err != nil {
			return 0, err
		}
		outdated += n
	}
	return outdated, nil
}

// prune removes what is stored of the set and is not declared, in all queues of the store. It
// returns the last error after it has tried each queue.
func (set *ScheduleSet) prune(ctx context.Context, c *Client, store Store) error {
	queues, err := store.Queues(ctx)
	if err != nil {
		return err
	}
	for _, q := range queues {
		pruned := set.pruneQueue(ctx, c, store, q)
		if pruned != nil && !errors.Is(pruned, ports.ErrUnknownQueue) { // it was forgotten meanwhile
			err = pruned
		}
	}
	return err
}

// pruneQueue prunes one queue.
func (set *ScheduleSet) pruneQueue(ctx context.Context, c *Client, store ports.Calendar, q ports.Queue) error {
	keep := make(map[core.ScheduleKey]bool)
	for i := range set.Schedules {
		if s := &set.Schedules[i]; s.target.name == q.Name {
			keep[s.core.ScheduleKey] = true
		}
	}
	stored, err := schedulesOf(ctx, store, ports.SchedulesRequest{Queue: q.Name})
	if err != nil {
		return err
	}

	var removals []ports.ScheduleChange
	for i := range stored.all {
		if s := &stored.all[i]; s.Set == set.Name && s.Version <= set.Version && !keep[s.ScheduleKey] {
			removals = append(removals, ports.ScheduleChange{ScheduleKey: s.ScheduleKey, Revision: s.Revision})
		}
	}
	t := target{name: q.Name, shards: q.Shards, indexIDs: q.IndexIDs, merge: q.Merge}
	_, err = c.changeSchedules(ctx, t, removals)
	return err
}

// minCallTime is the least time that a call of a server's declaration may take.
const minCallTime = 10 * time.Second

// boundedCalls is a store whose calls by which schedules are declared end after a time. So a call
// that hangs is repeated.
type boundedCalls struct {
	Store
	most time.Duration
}

// bounded makes a call whose context ends after a time.
func bounded[R any](ctx context.Context, most time.Duration, call func(context.Context) (R, error)) (R, error) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	return call(ctx)
}

// Declare implements [ports.Producer].
func (b boundedCalls) Declare(ctx context.Context, r ports.DeclareRequest) (ports.DeclareReply, error) {
	return bounded(ctx, b.most, func(ctx context.Context) (ports.DeclareReply, error) {
		return b.Store.Declare(ctx, r)
	})
}

// Queues implements [ports.Registry].
func (b boundedCalls) Queues(ctx context.Context) ([]ports.Queue, error) {
	return bounded(ctx, b.most, b.Store.Queues)
}

// Schedules implements [ports.Calendar].
func (b boundedCalls) Schedules(ctx context.Context, r ports.SchedulesRequest) (ports.SchedulesPage, error) {
	return bounded(ctx, b.most, func(ctx context.Context) (ports.SchedulesPage, error) {
		return b.Store.Schedules(ctx, r)
	})
}

// ChangeSchedules implements [ports.Calendar].
func (b boundedCalls) ChangeSchedules(
	ctx context.Context, r ports.ChangeSchedulesRequest,
) (ports.ChangeSchedulesReply, error) {
	return bounded(ctx, b.most, func(ctx context.Context) (ports.ChangeSchedulesReply, error) {
		return b.Store.ChangeSchedules(ctx, r)
	})
}

func noCalendar() error {
	return fmt.Errorf(
		"%w: the client's store keeps no schedules; make the client with a Store, since a transaction can't store them",
		ErrInvalidOptions)
}

// mostTries is how often a declaration is computed anew because a schedule has changed meanwhile.
const mostTries = 20

// errSchedulesChange is the error of a declaration whose schedules change all the time.
var errSchedulesChange = errors.New("the schedules were changed by others each time that they were to be declared; " +
	"declare them from one program")

// declareSchedules declares schedules of one queue, all of one set and version or of none. If the
// queue has a schedule of the set in a higher version, it changes nothing and returns their number.
func (c *Client) declareSchedules(
	ctx context.Context, t target, declarations []core.Declaration,
) (outdated int, err error) {
	var parsed specs.Specs
	var created []ports.ScheduleChange
	for range mostTries {
		stored, err := c.storedSchedules(ctx, t, declarations)
		if err != nil {
			return 0, err
		}

		if stored.hasLater(&declarations[0]) {
			return len(declarations), nil
		}

		var changes []ports.ScheduleChange
		for i := range declarations {
			d := &declarations[i]
			current := stored.byKey[d.ScheduleKey]
			spec, err := parsed.Parse(d.Spec)
			if err != nil {
				return 0, err
			}
			next, changed := d.Apply(current, spec, changedByCode, stored.now)
			if !changed {
				continue
			}
			change := ports.ScheduleChange{ScheduleKey: d.ScheduleKey, Revision: current.Revision, Schedule: &next}
			changes = append(changes, change)
			if current.Revision == 0 {
				created = append(created, change)
			}
		}

		refused, err := c.changeSchedules(ctx, t, changes)
		if err != nil {
			return 0, err
		}
		if refused == 0 {
			return c.withdraw(ctx, t, declarations, created)
		}
	}
	return 0, errSchedulesChange
}

// withdraw removes what a declaration has created beside a higher version of its set. A program of
// that version has declared the set since this one read it, and may have pruned it before the
// creation. It returns how many schedules are then outdated.
func (c *Client) withdraw(
	ctx context.Context, t target, declarations []core.Declaration, created []ports.ScheduleChange,
) (outdated int, err error) {
	if len(created) == 0 || declarations[0].Set == "" {
		return 0, nil
	}
	stored, err := c.storedSchedules(ctx, t, declarations)
	if err != nil || !stored.hasLater(&declarations[0]) {
		return 0, err
	}

	var removals []ports.ScheduleChange
	for _, own := range created {
		if stored.byKey[own.ScheduleKey].Revision == own.Schedule.Revision {
			removals = append(removals, ports.ScheduleChange{ScheduleKey: own.ScheduleKey, Revision: own.Schedule.Revision})
		}
	}
	_, err = c.changeSchedules(ctx, t, removals)
	return len(declarations), err
}

// changedByCode is who changed a schedule that a program has declared.
const changedByCode = "code"

// storedSet is schedules as they were read, and the store's time before that.
type storedSet struct {
	now   core.Instant
	all   []core.Schedule
	byKey map[core.ScheduleKey]core.Schedule
}

// hasLater reports whether a schedule of the declared set has a higher version.
func (s *storedSet) hasLater(d *core.Declaration) bool {
	return d.Set != "" && slices.ContainsFunc(s.all, func(stored core.Schedule) bool {
		return stored.Set == d.Set && stored.Version > d.Version
	})
}

// fewSchedules is the number of schedules up to which each is read by itself. More of them are read
// together with the others of the queue.
const fewSchedules = 20

// storedSchedules returns the stored schedules that are declared, perhaps among others. It declares
// the queue first if this client has not done so, and again if the store has forgotten the queue.
func (c *Client) storedSchedules(ctx context.Context, t target, declarations []core.Declaration) (*storedSet, error) {
	calendar, ok := c.store.(ports.Calendar)
	if !ok {
		return nil, noCalendar()
	}
	if _, err := c.generation(ctx, t); err != nil {
		return nil, err
	}

	stored, err := readSchedules(ctx, calendar, t, declarations)
	if outdated(err) {
		if _, err := c.declare(ctx, t); err != nil {
			return nil, err
		}
		return readSchedules(ctx, calendar, t, declarations)
	}
	return stored, err
}

// readSchedules reads what storedSchedules returns. For a set that is all schedules of the queue,
// since one that is not declared may have a higher version.
func readSchedules(
	ctx context.Context, calendar ports.Calendar, t target, declarations []core.Declaration,
) (*storedSet, error) {
	if len(declarations) > fewSchedules || declarations[0].Set != "" {
		return schedulesOf(ctx, calendar, ports.SchedulesRequest{Queue: t.name})
	}

	sum := &storedSet{byKey: make(map[core.ScheduleKey]core.Schedule)}
	for i := range declarations {
		k := declarations[i].ScheduleKey
		one, err := schedulesOf(ctx, calendar, ports.SchedulesRequest{
			Queue: t.name, Shards: []int{core.ShardOf(k.ID, t.shards)}, ID: k.ID, Name: k.Name,
		})
		if err != nil {
			return nil, err
		}
		sum.now = one.now
		for _, s := range one.all {
			sum.byKey[s.ScheduleKey] = s
		}
	}
	return sum, nil
}

// schedulesOf reads all pages of a list.
func schedulesOf(ctx context.Context, calendar ports.Calendar, r ports.SchedulesRequest) (*storedSet, error) {
	list := &storedSet{byKey: make(map[core.ScheduleKey]core.Schedule)}
	for {
		page, err := calendar.Schedules(ctx, r)
		if err != nil {
			return nil, err
		}
		if len(page.Unreached) > 0 {
			return nil, fmt.Errorf(
				"%d shards of queue %q can't be reached, the first is %v",
				len(page.Unreached), r.Queue, page.Unreached[0],
			)
		}
		list.now, list.all = page.Now, append(list.all, page.Schedules...)
		for _, s := range page.Schedules {
			list.byKey[s.ScheduleKey] = s
		}
		if r.After = page.Next; r.After == (core.ScheduleKey{}) {
			return list, nil
		}
	}
}

// changeSchedules makes changes of a queue's schedules, shard by shard. It returns how many were
// refused, because a schedule has changed meanwhile.
func (c *Client) changeSchedules(
	ctx context.Context, t target, changes []ports.ScheduleChange,
) (refused int, err error) {
	calendar, ok := c.store.(ports.Calendar)
	if !ok {
		return 0, noCalendar()
	}
	byShard := make([][]ports.ScheduleChange, t.shards)
	for _, change := range changes {
		at := core.ShardOf(change.ID, t.shards)
		byShard[at] = append(byShard[at], change)
	}
	for at, remaining := range byShard {
		for len(remaining) > 0 {
			r := ports.ChangeSchedulesRequest{
				Shard: core.Shard{Queue: t.name, Index: at}, Shards: t.shards,
				Changes: remaining[:min(len(remaining), ports.MaxScheduleChanges)],
			}
			reply, err := c.changeShard(ctx, calendar, t, r)
			if err != nil {
				return refused, err
			}
			for _, result := range reply.Results {
				if result == ports.ScheduleRefused {
					refused++
				}
			}
			remaining = remaining[len(reply.Results):]
		}
	}
	return refused, nil
}

// changeShard makes one call. If the store's record of the queue has changed, it declares the queue
// anew and repeats the call.
func (c *Client) changeShard(
	ctx context.Context, calendar ports.Calendar, t target, r ports.ChangeSchedulesRequest,
) (reply ports.ChangeSchedulesReply, err error) {
	if r.Generation, err = c.generation(ctx, t); err != nil {
		return reply, err
	}
	reply, err = calendar.ChangeSchedules(ctx, r)
	if outdated(err) {
		if r.Generation, err = c.declare(ctx, t); err != nil {
			return reply, err
		}
		reply, err = calendar.ChangeSchedules(ctx, r)
	}
	if err == nil {
		err = reply.Check(&r)
	}
	return reply, err
}
