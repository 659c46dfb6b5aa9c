package exchange

import (
	"context"
	"errors"
	"strings"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// smallEntries bounds the entries of a push that is sent with others, and largePush its bytes. So a
// push that takes long, or that breaks its connection, fails alone.
const smallEntries = 16

// IsSmall reports whether a push is small enough to go with others. On a Cluster no push does,
// since a server that does not answer would delay the pushes to the others.
func (s *Link) IsSmall(c *Call) bool {
	_, single := s.client.(*goredis.Client)
	return single && c.Entries <= smallEntries && c.Size < largePush
}

// SendSmall sends the calls of small pushes once, in one exchange with a single server. A call that
// the server has refused without running it has the error of the driver, for which [Refused] is
// true. Other errors are translated.
func (s *Link) SendSmall(ctx context.Context, calls []Call) []Outcome {
	outcomes, open := make([]Outcome, len(calls)), make([]int, len(calls))
	for i := range open {
		open[i] = i
	}
	s.send(ctx, calls, open, outcomes, false)

	var unknown []int
	for i := range outcomes {
		if goredis.HasErrorPrefix(outcomes[i].Err, "NOSCRIPT") {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) > 0 {
		s.send(ctx, calls, unknown, outcomes, true)
	}

	// No caller may take the end of this context for that of its own.
	own := context.WithoutCancel(ctx)
	for i := range outcomes {
		if !Refused(outcomes[i].Err) {
			outcomes[i].Err = Translate(own, calls[i].Script.Locate(outcomes[i].Err))
		}
	}
	return outcomes
}

// Refused reports whether an error of the driver means that no server has run the call, so that it
// can be sent again.
func Refused(err error) bool {
	return Retryable(err) || errors.Is(err, errDropped) || OtherSlot(err) ||
		goredis.HasErrorPrefix(err, "OOM") || Advice(err) != ""
}

// OtherSlot reports whether a server of a Cluster has refused a call because its keys are in several
// slots. err is an error of the driver or, since Translate keeps the text, of [Translate].
func OtherSlot(err error) bool { return err != nil && strings.Contains(err.Error(), "CROSSSLOT ") }

// GaveUp returns the error of a call that began at the given time and has ended with its context.
func (s *Link) GaveUp(ctx context.Context, began time.Time) error {
	s.connections.gaveUp(ctx, began)
	return Translate(ctx, ctx.Err())
}
