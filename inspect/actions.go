package inspect

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect/internal/bulk"
	"github.com/skeinq/skein/ports"
)

// Actor is the author of actions, for the log and the audit. Texts of more than
// [ports.MaxActionText] bytes are truncated.
type Actor struct {
	// Name is the name of the person or the program.
	Name string
	// From is the origin of the request, such as an address. It may be empty.
	From string
	// Reason is the actor's own explanation. It may be empty.
	Reason string
}

type actorKey struct{}

// WithActor returns a context that attributes actions of an [Inspector] to an actor, in the log and
// in the audit. So one Inspector may serve several people. If contexts are nested, the innermost
// actor counts.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// Action is an action of an operator, as the store's audit keeps it.
type Action struct {
	// At is when the action began.
	At time.Time
	// Verb is the kind of action, such as "pause", "revive" or "purge all".
	Verb string
	// Actor is the author of the action; see [WithActor].
	Actor Actor
	// Queue is the name of the queue. It is empty for an action on a server or on the store.
	Queue string
	// IDs are the first of the ids that the action named, at most [ports.MaxActionIDs]. For a drain
	// IDs has the name or the Owner of the server, as the caller gave it. Named is the number of
	// ids that the action named.
	IDs   []string
	Named int
	// Prefix, Group and Filter are the conditions that selected the entries if the action named no
	// id. All three are empty for all entries. Of an action on schedules Filter has the name of the
	// schedules, and what the action changed of them; of a change of settings it has that change.
	Prefix, Group, Filter string
	// Ended is true if the action has ended. Until then Took and Error are zero. An action whose
	// process was killed never ends.
	Ended bool
	// Handled is the number of entries that the action changed. While a call of a continued action
	// runs, it is the number that earlier calls changed.
	Handled int
	// Took is the duration of the action.
	Took time.Duration
	// Error is the error that ended the action. It is empty after success.
	Error string
}

// ActionsOptions select the actions to list. The zero value lists all actions that the store keeps.
type ActionsOptions struct {
	// Queue limits the list to actions on this queue. Empty means all queues and servers. An
	// unknown queue has no actions.
	Queue string
	// ID limits the list to actions that named this id, as far as their records have it: see
	// Action.IDs. Empty means all actions.
	ID string
}

// chooses reports whether the list has an action.
func (o *ActionsOptions) chooses(a *ports.Action) bool {
	return (o.Queue == "" || a.Queue == o.Queue) && (o.ID == "" || slices.Contains(a.IDs, auditText(o.ID)))
}

// Actions lists the actions that operators started through an Inspector, in this process and in
// others, newest first. The store keeps the last [ports.ActionsKept] of all queues together. The
// list includes actions that failed or have not ended, but no DryRun.
func (i *Inspector) Actions(ctx context.Context, o ActionsOptions) iter.Seq2[Action, error] {
	return func(yield func(Action, error) bool) {
		var r ports.ActionsRequest
		for range ports.ActionsKept/ports.MaxActions + 1 {
			page, err := ask(i, func(s Store) ([]ports.Action, error) { return s.Actions(ctx, r) })
			if err != nil {
				yield(Action{}, fmt.Errorf("actions: %w", err))
				return
			}

			for at := range page {
				r.Before = page[at].At
				if !o.chooses(&page[at]) {
					continue
				}
				if !yield(actionOf(&page[at]), nil) {
					return
				}
			}

			if len(page) == 0 { // a page may lack records that can't be read
				return
			}
		}
	}
}

func actionOf(a *ports.Action) Action {
	return Action{
		At:      a.At.Time(),
		Verb:    a.Verb,
		Actor:   Actor{Name: a.Actor, From: a.From, Reason: a.Reason},
		Queue:   a.Queue,
		IDs:     a.IDs,
		Named:   a.Named,
		Prefix:  a.Prefix,
		Group:   a.Group,
		Filter:  a.Filter,
		Ended:   a.Ended,
		Handled: a.Handled,
		Took:    a.Took,
		Error:   a.Error,
	}
}

// How long an action waits until the store has stored its audit record. An action runs even if the
// server with the audit does not answer. The wait for the first record is at most a quarter of the
// time until the deadline of ctx. If the first record failed, the action waits only auditAgain for
// the second one.
const (
	auditPatience = 2 * time.Second
	auditAgain    = 500 * time.Millisecond
)

// deed is an operator's action that has begun.
type deed struct {
	// inspector is nil for an action that is neither logged nor audited.
	inspector *Inspector
	began     time.Time
	action    ports.Action
	// silent is true if the record of the beginning could not be stored.
	silent bool
}

// begin begins a deed of ctx's actor on named ids, or on all entries. start records it in the
// audit.
func (i *Inspector) begin(ctx context.Context, verb, queue string, ids []string) *deed {
	if i != nil && i.log == nil { // not an Inspector made by New
		i = nil
	}

	who, _ := ctx.Value(actorKey{}).(Actor)
	d := &deed{inspector: i, began: time.Now(), action: ports.Action{
		ID:     rand.Text(),
		Verb:   verb,
		Actor:  auditText(who.Name),
		From:   auditText(who.From),
		Reason: auditText(who.Reason),
		Queue:  auditText(queue),
		Named:  len(ids),
	}}

	for _, id := range ids[:min(len(ids), ports.MaxActionIDs)] {
		d.action.IDs = append(d.action.IDs, auditText(id))
	}
	return d
}

func auditText(text string) string { return core.CutText(core.Text(text), ports.MaxActionText) }

// start records in the audit that the deed has begun. If that fails, nothing is lost, since the
// record of the end has all of its fields too.
func (d *deed) start(ctx context.Context) *deed {
	wait := auditPatience
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/4)
	}
	d.silent = d.audit(ctx, wait) != nil
	return d
}

// end logs the result of the deed and records it in the audit.
func (d *deed) end(ctx context.Context, handled int, err error) {
	if d.inspector == nil {
		return
	}

	a := &d.action
	a.Ended, a.Handled, a.Took = true, handled, time.Since(d.began)
	var failed slog.Attr // no error
	if err != nil {
		a.Error = auditText(err.Error())
		failed = slog.Any("error", err)
	}

	log := d.inspector.log
	log.LogAttrs(
		ctx,
		slog.LevelInfo,
		"operator acted",
		slog.String("actor", a.Actor),
		slog.String("from", a.From),
		slog.String("reason", a.Reason),
		slog.String("action", a.Verb),
		slog.String("queue", a.Queue),
		slog.Int("named", a.Named),
		slog.Any("ids", a.IDs),
		slog.String("prefix", a.Prefix),
		slog.String("group", a.Group),
		slog.String("filter", a.Filter),
		slog.Int("handled", handled),
		slog.Duration("took", a.Took),
		failed,
	)

	wait := auditPatience
	if d.silent {
		wait = auditAgain
	}
	if err := d.audit(ctx, wait); err != nil {
		log.LogAttrs(
			ctx,
			slog.LevelWarn,
			"the store's audit lacks an action, or its end",
			slog.String("action", a.Verb),
			slog.String("queue", a.Queue),
			slog.Any("error", err),
		)
	}
}

// audit stores the present state of the action, even if ctx has ended. It waits for at most the
// given time.
func (d *deed) audit(ctx context.Context, wait time.Duration) error {
	if d.inspector == nil || d.inspector.store == nil {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer stop()
	_, err := ask(d.inspector, func(s Store) (struct{}, error) { return struct{}{}, s.Audit(ctx, d.action) })
	return err
}

// log begins an action of an inspector on a queue, on named ids or on all entries, and its deed.
// The returned function ends the deed. A DryRun changes nothing, so it is neither logged nor
// audited.
func (a *action) log(ctx context.Context, i *Inspector, queue string, ids []string) (end func(*error)) {
	a.inspector, a.queue = i, queue
	d := i.begin(ctx, a.verb, queue, ids)

	if o := a.all; o != nil {
		d.action.Prefix, d.action.Group, d.action.Filter = auditText(o.Prefix), auditText(o.Group), auditText(o.Filter)
		if o.DryRun {
			d.inspector = nil
		}
		d.goesOn(&a.run.At)
	}

	d.start(ctx)
	a.deed = d

	return func(err *error) {
		failed := *err
		if !a.ended {
			failed = errPanicked
		}
		d.end(ctx, a.Handled, failed)
		if a.arrival != nil {
			a.arrival.end(ctx, a.Handled, failed)
		}
	}
}

// goesOn makes the calls of a continued action one action of the audit, as long as the same actor
// makes them. Such a call keeps the first call's reason unless it has its own, and begins with the
// number of entries that earlier calls have handled.
func (d *deed) goesOn(at *bulk.Standing) {
	actor := bulk.Digest(d.action.Actor)
	if at.Audit != "" && at.Actor == actor {
		d.action.ID, d.action.Handled = at.Audit, at.Handled
		d.action.Reason = cmp.Or(d.action.Reason, at.Reason)
	}
	at.Audit, at.Actor, at.Reason = d.action.ID, actor, d.action.Reason
}

var errPanicked = errors.New("a function of the caller panicked")
