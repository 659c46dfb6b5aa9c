package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/inspect"
)

var checkColumns = columns[inspect.Check]{
	{"status", false, func(c *inspect.Check) any { return c.Status.String() }},
	{"name", false, func(c *inspect.Check) any { return c.Name }},
	{"server", false, func(c *inspect.Check) any { return c.Server }},
	{"value", false, func(c *inspect.Check) any { return c.Value }},
	{"advice", false, func(c *inspect.Check) any { return c.Advice }},
}

func (a *app) doctorCommand() *cobra.Command {
	return a.command("doctor", "Check the store's servers, their settings and their state, with advice; ends with 6 if something is wrong", "skein doctor", cobra.NoArgs,
		func(ctx context.Context, i *inspect.Inspector, _ []string) error {
			checks, away, err := a.checks(ctx, i)
			if away != nil && (err != nil || len(checks) == 0) {
				return away
			}
			if shown := list(a, checkColumns, all(checks, err)); shown != nil {
				return shown
			}
			wrong := 0
			for _, c := range checks {
				if c.Status >= inspect.CheckWarn {
					wrong++
				}
			}
			switch {
			case wrong > 0 && away != nil && !answered(checks):
				return away
			case wrong > 0:
				return fmt.Errorf("%w: %d of %d checks warn or fail", errFound, wrong, len(checks))
			}
			return nil
		})
}

// answered reports whether a server has answered: a row says more of it than that it does not.
func answered(checks []inspect.Check) bool {
	return slices.ContainsFunc(checks, func(c inspect.Check) bool { return c.Name != "answers" || c.Status == inspect.CheckOK })
}

// checks returns the store's checks, and away if it does not answer. A store of one server that is silent has no more to say.
func (a *app) checks(ctx context.Context, i *inspect.Inspector) (checks []inspect.Check, away, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	answers := make(chan error, 1)
	go func() {
		began := time.Now()
		away := a.unanswered(ctx)
		if away != nil && time.Since(began) >= pingTimeout && !a.manyServers() {
			stop()
		}
		answers <- away
	}()
	checks, err = i.Checks(ctx)
	return checks, <-answers, err
}

// manyServers reports whether others may answer where one is silent.
func (a *app) manyServers() bool {
	url, _ := a.storeURL()
	scheme, _, _ := strings.Cut(url, ":")
	return strings.HasSuffix(scheme, "-cluster")
}
