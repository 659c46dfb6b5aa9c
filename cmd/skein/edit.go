package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/figures"
	"github.com/skeinq/skein/internal/linediff"
	"github.com/skeinq/skein/internal/service"
)

// editPlace is where the payloads of an edit are.
type editPlace struct {
	place inspect.Place
	// what names the entry, and flag the place for skein job payloads.
	what, flag string
	count      func(*inspect.Found) int
	edit       func(context.Context, *inspect.Inspector, string, string, [][]byte, inspect.EditFunc) (inspect.Result, error)
}

// deadEdit is for edits of the payloads of a dead letter.
func deadEdit() editPlace {
	return editPlace{
		place: inspect.PlaceDead,
		what:  "dead letter",
		flag:  "dead",
		count: func(f *inspect.Found) int {
			if f.DeadLetter == nil {
				return 0
			}
			return f.DeadLetter.PayloadCount
		},
		edit: func(
			ctx context.Context, i *inspect.Inspector, queue, id string, named [][]byte, edit inspect.EditFunc,
		) (inspect.Result, error) {
			return i.Edit(ctx, queue, inspect.DeadPayloads(inspect.DeadLetterPayloads{ID: id, Payloads: named}), edit)
		},
	}
}

// queuedEdit is for edits of the payloads of a queued job.
func queuedEdit() editPlace {
	return editPlace{
		place: inspect.PlaceQueued,
		what:  "queued job",
		flag:  "queued",
		count: func(f *inspect.Found) int {
			if f.Queued == nil {
				return 0
			}
			return f.Queued.PayloadCount
		},
		edit: func(
			ctx context.Context, i *inspect.Inspector, queue, id string, named [][]byte, edit inspect.EditFunc,
		) (inspect.Result, error) {
			return i.EditJob(ctx, queue, id, named, edit)
		},
	}
}

// edit returns the command that replaces a payload of a place.
func (a *app) edit(short, example string, at editPlace) *cobra.Command {
	var from, to bytesFlags
	var dry, notJSON bool
	c := a.command("edit QUEUE ID", short, example, cobra.ExactArgs(2), nil)
	to.add(c.Flags(), "payload", "the new payload")
	from.add(c.Flags(), "old", "the payload to replace, if there are several")
	c.Flags().BoolVar(&dry, "dry-run", false, "change nothing, and show the change on standard error")
	c.Flags().BoolVar(&notJSON, "not-json", false, "replace a payload that is JSON also by one that is not")

	c.RunE = func(cmd *cobra.Command, args []string) error {
		data, there, err := to.bytes(a.stdin)
		if err == nil && !there {
			err = usage(cmd, fmt.Errorf("give the new payload, by --payload, --payload-file or --payload-base64"))
		}
		if err != nil {
			return err
		}
		old, named, err := from.bytes(a.stdin)
		if err != nil {
			return err
		}

		i, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		if !named {
			if old, err = at.onlyPayload(cmd.Context(), i, args[0], args[1]); err != nil {
				return err
			}
		}
		if err := service.CheckJSON(old, data); err != nil && !notJSON {
			return fmt.Errorf("%w: %w; correct it, or give --not-json", errUsage, err)
		}

		if dry {
			a.sayChange(string(old), string(data))
			return nil
		}
		r, same, err := at.replace(cmd.Context(), i, args[0], args[1], old, data)
		if same && err == nil {
			_, _ = fmt.Fprintln(a.stderr, "The payload has these bytes already: nothing was changed.")
			return one(a, resultColumns, &r)
		}
		return a.named("edited", &r, err)
	}
	return c
}

// sayChange writes the lines that differ to standard error.
func (a *app) sayChange(before, after string) {
	for _, l := range linediff.Near(linediff.Of(before, after), linediff.Context) {
		text := l.Kind.Sign() + multiline(l.Text)
		switch l.Kind {
		case linediff.Skipped:
			text = l.Kind.Sign() + "… " + figures.Exact(int64(l.Count)) + " lines"
		case linediff.Kept:
			text = strings.TrimRight(text, " ")
		}
		_, _ = fmt.Fprintln(a.stderr, text)
	}
}

// onlyPayload returns the payload of an entry that has only one.
func (at *editPlace) onlyPayload(ctx context.Context, i *inspect.Inspector, queue, id string) ([]byte, error) {
	found, err := i.FindSome(ctx, queue, id, 0)
	if err != nil {
		return nil, err
	}
	if n := at.count(&found); n > 1 {
		return nil, fmt.Errorf("%w: the %s has %d payloads; name the one to replace with --old, "+
			"--old-file or --old-base64; skein job payloads --place %s shows them",
			errUsage, at.what, n, at.flag)
	}
	for p, err := range i.Payloads(ctx, queue, id, inspect.PayloadOptions{Place: at.place, Limit: 1}) {
		return p.Data, err
	}
	return nil, fmt.Errorf("%w: queue %s has no %s of the id %q", errNotFound, queue, at.what, id)
}

// replace replaces the bytes of the payload that has exactly the old bytes. A payload that changed
// meanwhile stays as it is. same reports whether the payload was found and already has the new
// bytes.
func (at *editPlace) replace(
	ctx context.Context,
	i *inspect.Inspector,
	queue, id string,
	old, data []byte,
) (r inspect.Result, same bool, err error) {
	r, err = at.edit(ctx, i, queue, id, [][]byte{old}, func(_ string, p core.Payload) ([]byte, bool, error) {
		same = bytes.Equal(p.Data, data)
		return data, true, nil
	})
	return r, same, err
}
