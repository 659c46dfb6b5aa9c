package redis

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// minMajor is the first major version of Redis whose scripts have flags.
const minMajor = 7

// serverCheck is whether the server was found usable.
type serverCheck struct {
	done  atomic.Bool
	going flight[error]
	// fit is closed once one server of those that take writes was found fit.
	fit     chan struct{}
	fitOnce sync.Once
}

// ready checks the server once, at first use.
func (s *Store) ready(ctx context.Context) error {
	if s.server.done.Load() {
		return nil
	}
	check, err := s.startCheck(ctx)
	if err != nil {
		return err
	}
	select {
	case <-check.done:
		return check.value
	case <-ctx.Done():
		return translate(ctx, ctx.Err())
	}
}

// readyToLook is ready for calls that write nothing. Where a Cluster's server that has the list of queues does not answer, it is enough that
// another was found fit: which format is stored is not known then.
func (s *Store) readyToLook(ctx context.Context) error {
	if s.server.done.Load() || !s.onCluster() {
		return s.ready(ctx)
	}
	check, err := s.startCheck(ctx)
	if err != nil {
		return err
	}
	late := time.NewTimer(time.Until(check.began.Add(registryPatience)))
	defer late.Stop()
	var enough <-chan struct{}
	for {
		select {
		case <-check.done:
			if check.value != nil && !storekit.HasKnownOutcome(check.value) && s.server.hasFit() {
				return nil
			}
			return check.value
		case <-late.C:
			enough = s.server.fit
		case <-enough:
			return nil
		case <-ctx.Done():
			return translate(ctx, ctx.Err())
		}
	}
}

// registryPatience is how long who looks waits for the store to be found usable, the Cluster's server with the list of queues included.
const registryPatience = 2 * checkPatience

// hasFit reports whether a server was found fit.
func (c *serverCheck) hasFit() bool {
	select {
	case <-c.fit:
		return true
	default:
		return false
	}
}

func (s *Store) checkPrefix() error {
	if strings.ContainsAny(s.prefix, "{}") {
		return fmt.Errorf("%w: the prefix %q of Redis's keys has braces, which would tie all keys to one slot; use one without", ports.ErrUnusable, s.prefix)
	}
	return nil
}

// readyTimeout is how long a check of the server may take, with a client that heeds contexts.
const readyTimeout = time.Minute

// startCheck has the server checked, unless that is going on. It ends for all who wait, whoever gives up. It is an error if no server can be
// used with these options.
func (s *Store) startCheck(ctx context.Context) (*landing[error], error) {
	if err := cmp.Or(s.checkClient(), s.checkPrefix()); err != nil {
		return nil, err
	}
	ctx = context.WithoutCancel(ctx)
	return s.server.going.join(s.workers, func() error {
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		err := s.checkServer(ctx)
		if err != nil && ctx.Err() != nil && !storekit.HasKnownOutcome(err) {
			return fmt.Errorf("redis: the server could not be checked within %v", readyTimeout) // no context of a caller's has ended
		}
		return err
	}), nil
}

// Ping implements [ports.Registry]. Rights and policy may have changed since the
// first use; the version has not.
func (s *Store) Ping(ctx context.Context) error {
	first := !s.server.done.Load()
	if err := s.ready(ctx); err != nil || first {
		return err
	}
	err, ended := await(ctx, s.workers, func() error {
		return cmp.Or(s.eachMaster(ctx, s.checkPolicy), s.checkRights(ctx))
	})
	return cmp.Or(err, ended)
}

func (s *Store) checkServer(ctx context.Context) error {
	if s.server.done.Load() {
		return nil
	}
	for _, check := range []func(context.Context) error{s.checkMasters, s.checkRights, s.checkFormat} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	s.server.done.Store(true)
	return nil
}

// checkMasters checks what each master has of its own.
func (s *Store) checkMasters(ctx context.Context) error {
	return s.eachMaster(ctx, func(ctx context.Context, master goredis.UniversalClient) error {
		err := cmp.Or(s.checkVersion(ctx, master), s.checkPolicy(ctx, master))
		if err == nil {
			s.server.fitOnce.Do(func() { close(s.server.fit) })
		}
		return err
	})
}

func (s *Store) checkVersion(ctx context.Context, master goredis.UniversalClient) error {
	info, err := master.Info(ctx, "server").Result()
	if err != nil {
		return s.cannotCheck(ctx, "its version", err)
	}
	return parseVersion(info)
}

// parseVersion reads the reply to INFO and refuses a version that is too old.
func parseVersion(info string) error {
	version := parseInfo(info)["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < minMajor {
		return fmt.Errorf("%w: Redis has version %q; use %d.0 or later, or Valkey", ports.ErrUnusable, version, minMajor)
	}
	return nil
}

// checkPolicy refuses a server that may evict our keys. None has a TTL, so that a policy of
// those that do is safe, if not what full servers should have.
func (s *Store) checkPolicy(ctx context.Context, master goredis.UniversalClient) error {
	const setting, fit = "maxmemory-policy", "noeviction"
	config, err := master.ConfigGet(ctx, setting).Result()
	if err != nil {
		return s.cannotCheck(ctx, "that its "+setting+" is "+fit, err)
	}
	policy, ok := config[setting]
	switch {
	case !ok || policy == fit:
		return nil
	case strings.HasPrefix(policy, "volatile-"):
		if !s.server.done.Load() {
			s.logger.Warn("needs attention", "check", "maxmemory_policy", "server", addressOf(master), "value", policy,
				"advice", "no key of ours has a TTL, so none is evicted, but set it to "+fit+" if the server has no other use")
		}
		return nil
	default:
		return fmt.Errorf("%w: the %s of Redis is %s, so it may evict jobs and leases; set it to %s", ports.ErrUnusable, setting, policy, fit)
	}
}

// addressOf returns where a server is, if the client says.
func addressOf(server goredis.UniversalClient) string {
	if c, ok := server.(*goredis.Client); ok {
		return c.Options().Addr
	}
	return ""
}

// checkRights asks whether the user may run every command of the scripts: a
// script that is refused one midway has made some of its writes.
func (s *Store) checkRights(ctx context.Context) error {
	o := s.exchange(ctx, []call{{script: rightsScript, keys: []any{s.queuesKey()}}})[0]
	if o.err != nil {
		return o.err
	}
	var missing []string
	for r := replyOf(o.value); r.more(); {
		missing = append(missing, strings.ToLower(r.text()))
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: the user of Redis may not run %s on keys below %q; grant the rights that docs/redis.md lists",
			ports.ErrUnusable, strings.Join(missing, ", "), s.prefix)
	}
	return nil
}

// cannotCheck logs a warning if err is the server's refusal to answer the user, and
// returns any other error.
func (s *Store) cannotCheck(ctx context.Context, what string, err error) error {
	forbidden := goredis.HasErrorPrefix(err, "NOPERM")
	if !forbidden && (advice(err) != "" || !strings.HasPrefix(err.Error(), "ERR ")) {
		return translate(ctx, err)
	}
	if s.server.done.Load() {
		return nil // it was said at the first use
	}
	s.logger.Warn("the server does not let us check a setting; make sure of it", "setting", what, "error", err)
	return nil
}
