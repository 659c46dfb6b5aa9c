package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/cmd/skein/internal/shop"
	"github.com/skeinq/skein/inspect"
)

func (a *app) demoCommand() *cobra.Command {
	var s serving
	c := &cobra.Command{
		Use:     "demo",
		Short:   "Serve the dashboard of a demo shop in memory, with a day of history and one problem of each kind",
		Args:    arguments(cobra.NoArgs),
		Example: "  skein demo",
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), &s) },
	}
	s.flags(c)
	return c
}

// demo listens first, because making the shop's past takes a while. A request that arrives
// meanwhile waits until the past is made.
func (a *app) demo(ctx context.Context, s *serving) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	listener, err := listen(ctx, s.listen)
	if err != nil {
		return err
	}
	defer listener.Close() // the second close, if the listener was served

	log := a.log()
	log.Info("listening; making a day of the shop's history before the first page", "url", urlOf(listener))
	there, err := shop.Open(ctx, nil)
	if ctx.Err() != nil { // stopped before there was anything to see
		return nil
	}
	if err != nil {
		return err
	}

	handler, err := s.handler(inspect.New(there.Store(), inspect.Options{Logger: log}), "demo", a.env(tokenVariable))
	if err != nil {
		return err
	}

	ended := make(chan error, 1)
	go func() { ended <- there.Run(ctx) }()
	err = serveAt(ctx, log, listener, handler)

	// The shop's servers and customers run until ctx ends.
	stop()
	return errors.Join(err, <-ended)
}
