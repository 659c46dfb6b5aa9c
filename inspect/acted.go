package inspect

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Actor is who acts, for the log.
type Actor struct {
	// Name is the person's, or the program's.
	Name string
	// From is where the request came from, such as an address. It may be empty.
	From string
}

type actorKey struct{}

// WithActor returns a context in which actions of an [Inspector] are logged as those of an actor, so that one
// inspector may serve many people. The innermost counts.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// deed is an action of an operator under way.
type deed struct {
	log   *slog.Logger
	began time.Time
	// action says what is done, ids to how many named entries; 0 is all.
	action, queue, prefix, group, filter string
	ids                                  int
}

// begin begins a deed.
func (i *Inspector) begin(action, queue string, ids int) deed {
	d := deed{began: time.Now(), action: action, queue: queue, ids: ids}
	if i != nil {
		d.log = i.log
	}
	return d
}

// end logs what was done. A deed that is not logged has no log.
func (d *deed) end(ctx context.Context, handled int, err error) {
	if d.log == nil {
		return
	}
	who, _ := ctx.Value(actorKey{}).(Actor)
	var failed slog.Attr // none
	if err != nil {
		failed = slog.Any("error", err)
	}
	d.log.LogAttrs(ctx, slog.LevelInfo, "operator acted", slog.String("actor", who.Name), slog.String("from", who.From),
		slog.String("action", d.action), slog.String("queue", d.queue), slog.Int("ids", d.ids), slog.String("prefix", d.prefix), slog.String("group", d.group), slog.String("filter", d.filter),
		slog.Int("handled", handled), slog.Duration("took", time.Since(d.began)), failed)
}

// log begins the deed of a bulk action on named entries, or on all. What it returns ends it. A DryRun changes nothing and
// is not logged.
func (a *action) log(ctx context.Context, i *Inspector, queue string, ids int) (end func(*error)) {
	d := i.begin(a.verb, queue, ids)
	if a.going != nil {
		d.prefix, d.group, d.filter = a.going.o.Prefix, a.going.o.Group, a.going.o.Filter
		if a.going.o.DryRun {
			d.log = nil
		}
	}
	return func(err *error) {
		failed := *err
		if !a.ended {
			failed = errPanicked
		}
		d.end(ctx, a.progress.Handled, failed)
	}
}

var errPanicked = errors.New("a function of the caller's panicked")
