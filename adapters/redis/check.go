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
	if noClient(s.client) {
		return fmt.Errorf("%w: there is no client of Redis; give New one", ports.ErrUnusable)
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return fmt.Errorf("%w: the prefix %q of Redis's keys has braces, which would tie all keys to one slot; use one without", ports.ErrUnusable, s.prefix)
	}
	err, ended := await(ctx, s.workers, func() error { return s.checkServer(ctx) })
	return errors.Join(err, ended)
}

// noClient reports whether New was given no client, also as a nil pointer.
func noClient(client goredis.UniversalClient) bool {
	switch c := client.(type) {
	case nil:
		return true
	case *goredis.Client:
		return c == nil
	case *goredis.ClusterClient:
		return c == nil
	case *goredis.Ring:
		return c == nil
	}
	return false
}

// Ping implements [ports.Registry]. Rights and policy may have changed since the
// first use; the version has not.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.ready(ctx); err != nil {
		return err
	}
	err, ended := await(ctx, s.workers, func() error {
		return cmp.Or(s.checkPolicy(ctx), s.checkRights(ctx))
	})
	return cmp.Or(err, ended)
}

func (s *Store) checkServer(ctx context.Context) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.done.Load() {
		return nil
	}
	for _, check := range []func(context.Context) error{s.checkVersion, s.checkPolicy, s.checkRights, s.checkFormat} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	s.server.done.Store(true)
	return nil
}

func (s *Store) checkVersion(ctx context.Context) error {
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return s.cannotCheck(ctx, "its version", err)
	}
	return parseVersion(info)
}

// parseVersion reads the reply to INFO and refuses a version that is too old.
func parseVersion(info string) error {
	_, version, found := strings.Cut(info, "redis_version:")
	version, _, _ = strings.Cut(version, "\r\n")
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); !found || err != nil || n < minMajor {
		return fmt.Errorf("%w: Redis has version %q; use %d.0 or later, or Valkey", ports.ErrUnusable, version, minMajor)
	}
	return nil
}

func (s *Store) checkPolicy(ctx context.Context) error {
	const setting, fit = "maxmemory-policy", "noeviction"
	config, err := s.client.ConfigGet(ctx, setting).Result()
	if err != nil {
		return s.cannotCheck(ctx, "that its "+setting+" is "+fit, err)
	}
	if policy, ok := config[setting]; ok && policy != fit {
		return fmt.Errorf("%w: the %s of Redis is %s, so it may evict jobs and leases; set it to %s", ports.ErrUnusable, setting, policy, fit)
	}
	return nil
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
	s.logger.Warn("redis: the server does not let us check "+what+"; make sure of it", "error", err.Error())
	return nil
}
