package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/skeinq/skein/inspect"
)

// storeRest is the pause of a serving command between two checks of whether the store answers.
const storeRest = 5 * time.Second

// serveStore serves until ctx ends, and logs when the store stops answering and when it answers
// again.
func (a *app) serveStore(
	ctx context.Context,
	log *slog.Logger,
	i *inspect.Inspector,
	address string,
	handler http.Handler,
) error {
	watching, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watchStore(watching, log, i.Ping, a.answerTime())
	}()
	defer func() {
		stop()
		<-ended
	}()

	return serve(ctx, log, address, handler)
}

// watchStore checks repeatedly whether the store can be used, until ctx ends. A check may take as
// long as patience. watchStore logs the beginning and the end of each outage.
func watchStore(ctx context.Context, log *slog.Logger, ping func(context.Context) error, patience time.Duration) {
	var began time.Time // zero while the store answers
	for {
		asked := time.Now()
		brief, stop := context.WithTimeout(ctx, patience)
		err := ping(brief)
		late := brief.Err() != nil
		stop()

		switch {
		case ctx.Err() != nil:
			return
		case err != nil && began.IsZero():
			began = asked
			message := "the store can't be used"
			if late || exitCode(err) == exitAway {
				message = "the store does not answer"
			}
			log.Warn(message, "error", err)
		case err == nil && !began.IsZero():
			log.Info("the store answers again", "after", time.Since(began).Round(time.Millisecond))
			began = time.Time{}
		}

		if !rest(ctx, storeRest) {
			return
		}
	}
}
