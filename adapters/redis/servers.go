package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// checkClient refuses clients that the store can't use as they are.
func (s *Store) checkClient() error {
	var timeout time.Duration
	switch c := s.client.(type) {
	case *goredis.Client:
		if c == nil {
			return errNoClient
		}
		timeout = c.Options().ReadTimeout
	case *goredis.ClusterClient:
		if c == nil {
			return errNoClient
		}
		timeout = c.Options().ReadTimeout
	case nil:
		return errNoClient
	default:
		return fmt.Errorf("%w: the Redis client is a %T, which the store does not support; use a *redis.Client or a *redis.ClusterClient", ports.ErrUnusable, c)
	}
	if s.replicas > 0 && timeout > 0 && s.waitTimeout >= timeout {
		return fmt.Errorf("%w: the WaitTimeout is %v, but the Redis client waits only %v for a reply (ReadTimeout); make WaitTimeout shorter or ReadTimeout longer",
			ports.ErrUnusable, s.waitTimeout, timeout)
	}
	return nil
}

var errNoClient = fmt.Errorf("%w: there is no Redis client; pass one to New", ports.ErrUnusable)

// eachMaster checks every master at once. A master that can't be reached fails nothing if another
// is reached: servers start without it.
func (s *Store) eachMaster(ctx context.Context, check func(context.Context, goredis.UniversalClient) error) error {
	all, err := s.masters(ctx)
	if err != nil {
		return translate(ctx, err)
	}
	checks := make([]func(func(error)), len(all))
	for i, master := range all {
		checks[i] = func(report func(error)) { report(check(ctx, master)) }
	}
	reached := false
	var failure error
	err = together(ctx, s.workers, checkPatience, checks, func(err error) (bool, error) {
		if errors.Is(err, ports.ErrUnusable) {
			return false, err
		}
		failure = cmp.Or(err, failure)
		reached = reached || err == nil
		return err == nil, nil
	})
	if err != nil && err != errStraggler {
		return err
	}
	if reached {
		return nil
	}
	return cmp.Or(failure, errNoMaster)
}

var errNoMaster = errors.New("redis: the Cluster has no master; see CLUSTER NODES")

// longestPatience is how long a server may take once another has answered the same call.
const longestPatience = 3 * time.Second

// patience returns how long to wait for a server that does not answer although another has. It is
// long enough for a slow server, and leaves time to do the rest.
func patience(ctx context.Context, longest time.Duration) time.Duration {
	if deadline, ok := ctx.Deadline(); ok {
		return max(0, min(longest, time.Until(deadline)/2))
	}
	return longest
}
