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
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// minMajor is the first major version of Redis whose scripts have flags.
const minMajor = 7

// serverCheck has the findings about the server.
type serverCheck struct {
	// done is true once the server was found usable and its format is known.
	done  atomic.Bool
	going exchange.Flight[error]
	// beside is closed once a Cluster was found usable except for the format, because the server that
	// has the format could not be reached. From then on, calls don't wait for it.
	beside     chan struct{}
	besideOnce sync.Once
	// newer is the error that this program may not use the format. It is set once such a format was
	// read.
	newer atomic.Pointer[error]
	// ours is true once a shard, or the list of queues, had a record in this program's form: see
	// format.go.
	ours atomic.Bool
}

// The longest duration of a check of the Cluster's server that has the format, and the pause
// before the next check.
const (
	formatPatience = 2 * checkPatience
	formatPause    = time.Second
)

// ready checks the server at first use. If a Cluster's server that has the format can't be reached,
// ready returns nil without the format, and later calls try to read it again.
func (s *Store) ready(ctx context.Context) error {
	if s.server.done.Load() {
		return nil
	}

	check, err := s.startCheck(ctx)
	if err != nil {
		return err
	}

	select {
	case <-check.Done:
		if check.Value != errFormatUnread {
			return check.Value
		}
	case <-s.server.beside:
	case <-ctx.Done():
		return exchange.Translate(ctx, ctx.Err())
	}

	if newer := s.server.newer.Load(); newer != nil {
		return *newer
	}
	return nil
}

// readyFor is ready for calls. While the format is not known, no call writes to the list of
// queues, and calls write to shards only once one of them was found to have this program's form.
// The declaration of a queue checks the format itself.
func (s *Store) readyFor(ctx context.Context, calls ...exchange.Call) error {
	if err := s.ready(ctx); err != nil || s.server.done.Load() {
		return err
	}
	for i := range calls {
		switch c := &calls[i]; {
		case c.Script == nil, c.Script.Reads, c.Script == declareScript, c.Script == declaredScript:
		case !s.server.ours.Load(), c.Keys[0] == s.queuesKey():
			return errFormatUnread
		}
	}
	return nil
}

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
		return fmt.Errorf("%w: the Redis client is a %T, which the store does not support; "+
			"use a *redis.Client or a *redis.ClusterClient",
			ports.ErrUnusable, c)
	}

	if s.replicas > 0 && timeout > 0 && s.waitTimeout >= timeout {
		return fmt.Errorf("%w: the WaitTimeout is %v, but the Redis client waits only %v for a reply (ReadTimeout); "+
			"make WaitTimeout shorter or ReadTimeout longer",
			ports.ErrUnusable, s.waitTimeout, timeout)
	}
	return nil
}

var errNoClient = fmt.Errorf("%w: there is no Redis client; pass one to New", ports.ErrUnusable)

func (s *Store) checkPrefix() error {
	if strings.ContainsAny(s.prefix, "{}") {
		return fmt.Errorf("%w: the prefix %q of Redis's keys has braces, which would put all keys into one slot; "+
			"use a prefix without braces",
			ports.ErrUnusable, s.prefix)
	}
	return nil
}

// readyTimeout is how long a check of the server may take, with a client that respects contexts.
const readyTimeout = time.Minute

// startCheck starts a check of the server, unless one is under way. All waiting callers share its
// result, even if one of them gives up. It returns an error if no server can be used with these
// options.
func (s *Store) startCheck(ctx context.Context) (*exchange.Landing[error], error) {
	if err := cmp.Or(s.checkClient(), s.checkPrefix()); err != nil {
		return nil, err
	}

	ctx = context.WithoutCancel(ctx)
	return s.server.going.Join(s.link.Workers, func() error {
		ctx, cancel := context.WithTimeout(ctx, readyTimeout)
		defer cancel()
		err := s.checkServer(ctx)
		// No caller's context has ended: the time of the check is over.
		if err != nil && ctx.Err() != nil && !storekit.HasKnownOutcome(err) {
			return fmt.Errorf("redis: the check of the server did not end within %v; look at the server's log and load",
				readyTimeout)
		}
		return err
	}), nil
}

// Ping implements [ports.Registry]. It checks rights and policy again, because they may have
// changed since the first call; the version can't have. It returns an error if the server of a
// Cluster that has the list of queues can't be reached, although other calls work without it.
func (s *Store) Ping(ctx context.Context) error {
	first := !s.server.done.Load()
	if err := s.ready(ctx); err != nil || first && s.server.done.Load() {
		return err
	}

	err, ended := exchange.Await(ctx, s.link, func() error {
		return cmp.Or(
			s.link.EachMaster(ctx, checkPatience, func(ctx context.Context, master goredis.UniversalClient) error {
				return cmp.Or(s.checkPolicy(ctx, master), s.checkRights(ctx, master))
			}),
			s.checkFormat(ctx),
		)
	})
	return cmp.Or(err, ended)
}

func (s *Store) checkServer(ctx context.Context) error {
	if s.server.done.Load() {
		return nil
	}

	if err := s.link.EachMaster(ctx, checkPatience, s.checkMaster); err != nil {
		return err
	}

	err := s.checkFormat(ctx)
	switch {
	case err == nil:
		s.server.done.Store(true)
	case err == errFormatUnread:
		s.server.besideOnce.Do(func() { close(s.server.beside) })
		select {
		case <-time.After(formatPause):
		case <-ctx.Done():
		}
	case errors.Is(err, ports.ErrUnusable):
		s.server.newer.Store(&err)
	}
	return err
}

// checkMaster checks the settings of each master.
func (s *Store) checkMaster(ctx context.Context, master goredis.UniversalClient) error {
	for _, check := range []func(context.Context, goredis.UniversalClient) error{
		s.checkVersion,
		s.checkPolicy,
		s.checkRights,
	} {
		if err := check(ctx, master); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) checkVersion(ctx context.Context, master goredis.UniversalClient) error {
	info, err := master.Info(ctx, "server").Result()
	if err != nil {
		return s.cannotCheck(ctx, "version", err)
	}
	return parseVersion(info)
}

// parseVersion reads the reply to INFO and refuses a version that is too old.
func parseVersion(info string) error {
	version := parseInfo(info)["redis_version"]
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); err != nil || n < minMajor {
		return fmt.Errorf("%w: Redis has version %q; use %d.0 or later, or Valkey",
			ports.ErrUnusable, version, minMajor)
	}
	return nil
}

// checkPolicy refuses a server that may evict the store's keys. These keys have no TTL, so a policy
// that evicts only keys with a TTL is safe. noeviction is still the better policy for a server that
// only Skein uses.
func (s *Store) checkPolicy(ctx context.Context, master goredis.UniversalClient) error {
	const setting, fit = "maxmemory-policy", "noeviction"
	config, err := master.ConfigGet(ctx, setting).Result()
	if err != nil {
		return s.cannotCheck(ctx, setting+", which must be "+fit, err)
	}

	policy, ok := config[setting]
	switch {
	case !ok || policy == fit:
		return nil
	case strings.HasPrefix(policy, "volatile-"):
		if !s.server.done.Load() {
			s.logger.Warn("needs attention",
				"check", "maxmemory_policy", "server", serverAddress(master), "value", policy,
				"advice", "Skein's keys have no TTL, so this policy evicts none of them; set it to "+fit+
					" if only Skein uses the server")
		}
		return nil
	default:
		return fmt.Errorf("%w: the %s of Redis is %s, so it may evict jobs and leases; set it to %s",
			ports.ErrUnusable, setting, policy, fit)
	}
}

// serverAddress returns a server's address, if the client has it.
func serverAddress(server goredis.UniversalClient) string {
	if c, ok := server.(*goredis.Client); ok {
		return c.Options().Addr
	}
	return ""
}

// checkRights checks whether the user may run every command of the scripts: a script that is
// refused a command midway has already made some of its writes.
func (s *Store) checkRights(ctx context.Context, master goredis.UniversalClient) error {
	value, err := exchange.RunOn(ctx, master, exchange.Call{Script: rightsScript, Args: []any{s.queuesKey()}})
	if err != nil {
		return err
	}

	var missing []string
	for r := record.ReplyOf(value); r.More(); {
		missing = append(missing, strings.ToLower(r.Text()))
	}
	if len(missing) > 0 {
		return fmt.Errorf("%w: the user of Redis may not run %s on keys below %q; "+
			"grant the rights that docs/operations/redis.md lists",
			ports.ErrUnusable, strings.Join(missing, ", "), s.prefix)
	}
	return nil
}

// cannotCheck logs a warning if err is the server's refusal to answer the user, and returns any
// other error.
func (s *Store) cannotCheck(ctx context.Context, what string, err error) error {
	forbidden := goredis.HasErrorPrefix(err, "NOPERM")
	if !forbidden && (exchange.Advice(err) != "" || !strings.HasPrefix(err.Error(), "ERR ")) {
		return exchange.Translate(ctx, err)
	}

	if s.server.done.Load() {
		return nil // it was logged at first use
	}
	s.logger.Warn("a setting of the store can't be checked; check it yourself", "setting", what, "error", err)
	return nil
}
