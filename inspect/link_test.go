package inspect_test

import (
	"context"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// link stands between an inspector and its store: the test sees each call, and
// can let it fail before or after it takes effect.
type link struct {
	*memory.Store
	// before and after are asked about each call by its name.
	before func(call string) error
	after  func(call string) error
}

func linked[R any](l *link, call string, do func() (R, error)) (R, error) {
	var none R
	if l.before != nil {
		if err := l.before(call); err != nil {
			return none, err
		}
	}
	r, err := do()
	if err == nil && l.after != nil {
		if err := l.after(call); err != nil {
			return none, err
		}
	}
	return r, err
}

func (l *link) Queues(ctx context.Context) ([]ports.Queue, error) {
	return linked(l, "Queues", func() ([]ports.Queue, error) { return l.Store.Queues(ctx) })
}

func (l *link) Stats(ctx context.Context, queues []string) ([]ports.QueueStats, error) {
	return linked(l, "Stats", func() ([]ports.QueueStats, error) { return l.Store.Stats(ctx, queues) })
}

func (l *link) Jobs(ctx context.Context, r ports.JobsRequest) (ports.JobsPage, error) {
	return linked(l, "Jobs", func() (ports.JobsPage, error) { return l.Store.Jobs(ctx, r) })
}

func (l *link) Morgue(ctx context.Context, r ports.MorgueRequest) (ports.MorguePage, error) {
	return linked(l, "Morgue", func() (ports.MorguePage, error) { return l.Store.Morgue(ctx, r) })
}

func (l *link) Find(ctx context.Context, queue, id string) (ports.Found, error) {
	return linked(l, "Find", func() (ports.Found, error) { return l.Store.Find(ctx, queue, id) })
}

func (l *link) Pause(ctx context.Context, queue string) error {
	_, err := linked(l, "Pause", func() (struct{}, error) { return struct{}{}, l.Store.Pause(ctx, queue) })
	return err
}

func (l *link) Bury(ctx context.Context, s ports.JobStep) (ports.StepReply, error) {
	return linked(l, "Bury", func() (ports.StepReply, error) { return l.Store.Bury(ctx, s) })
}

func (l *link) Expedite(ctx context.Context, s ports.JobStep) (ports.StepReply, error) {
	return linked(l, "Expedite", func() (ports.StepReply, error) { return l.Store.Expedite(ctx, s) })
}

func (l *link) Revive(ctx context.Context, s ports.DeadLetterStep) (ports.StepReply, error) {
	return linked(l, "Revive", func() (ports.StepReply, error) { return l.Store.Revive(ctx, s) })
}

func (l *link) Purge(ctx context.Context, s ports.DeadLetterStep) (ports.StepReply, error) {
	return linked(l, "Purge", func() (ports.StepReply, error) { return l.Store.Purge(ctx, s) })
}

func (l *link) Edit(ctx context.Context, r ports.EditRequest) (ports.StepReply, error) {
	return linked(l, "Edit", func() (ports.StepReply, error) { return l.Store.Edit(ctx, r) })
}

// linked puts a link between the site's inspector and its store.
func (s *site) linked() *link {
	l := &link{Store: s.store}
	s.Inspector = inspect.New(l, inspect.Options{})
	return l
}
