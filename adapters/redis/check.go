package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// minMajor is the first major version of Redis whose scripts have flags.
const minMajor = 7

// serverCheck is whether the server was found usable.
type serverCheck struct {
	done atomic.Bool
	mu   sync.Mutex
}

// ready checks the server once, at first use.
func (s *Store) ready(ctx context.Context) error {
	if s.server.done.Load() {
		return nil
	}
	if err := s.checkClient(); err != nil {
		return err
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return fmt.Errorf("%w: the prefix %q of Redis's keys has braces, which would tie all keys to one slot; use one without", ports.ErrUnusable, s.prefix)
	}
	err, ended := await(ctx, s.workers, func() error { return s.checkServer(ctx) })
	return errors.Join(err, ended)
}

// Ping implements [ports.Registry]. Rights and policy may have changed since the
// first use; the version has not.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	err, ended := await(ctx, s.workers, func() error {
		return cmp.Or(s.eachMaster(ctx, s.checkPolicy), s.checkRights(ctx))
	})
	return cmp.Or(err, ended)
}

func (s *Store) checkServer(ctx context.Context) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
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
		return cmp.Or(s.checkVersion(ctx, master), s.checkPolicy(ctx, master))
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
