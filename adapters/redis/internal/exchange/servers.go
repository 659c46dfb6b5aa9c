package exchange

import (
	"cmp"
	"context"
	"errors"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// EachMaster checks all masters at once. Once one master was checked, it waits for the others at
// most for the time longest. A master that can't be reached causes no error if another is reached,
// so programs start without it.
func (s *Link) EachMaster(
	ctx context.Context,
	longest time.Duration,
	check func(context.Context, goredis.UniversalClient) error,
) error {
	all, err := s.Masters(ctx)
	if err != nil {
		return Translate(ctx, err)
	}

	checks := make([]func(func(error)), len(all))
	for i, master := range all {
		checks[i] = func(report func(error)) { report(check(ctx, master)) }
	}

	reached := false
	var failure error
	err = Together(ctx, s.Workers, longest, checks, func(err error) (bool, error) {
		if errors.Is(err, ports.ErrUnusable) {
			return false, err
		}
		failure = cmp.Or(err, failure)
		reached = reached || err == nil
		return err == nil, nil
	})
	if err != nil && err != ErrStraggler {
		return err
	}

	if reached {
		return nil
	}
	return cmp.Or(failure, errNoMaster)
}

var errNoMaster = errors.New("redis: the Cluster has no master; see CLUSTER NODES")

// LongestPatience is how long a server may take once another has answered the same call.
const LongestPatience = 3 * time.Second

// Patience returns how long to wait for a server that does not answer although another has. It is
// long enough for a slow server, and leaves time to do the rest.
func Patience(ctx context.Context, longest time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(0, min(longest, time.Until(deadline)/2))
	}
	return longest
}
