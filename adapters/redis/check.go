package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// oldest is the first major version whose scripts have flags.
const oldest = 7

// check is whether the server was found fit for use.
type check struct {
	done atomic.Bool
	mu   sync.Mutex
}

// ready looks at the server once, at first use.
func (s *Store) ready(ctx context.Context) error {
	if s.server.done.Load() {
		return nil
	}
	if strings.ContainsAny(s.prefix, "{}") {
		return fmt.Errorf("redis: the prefix %q has braces, which would tie all keys to one slot; use others", s.prefix)
	}
	err, ended := await(ctx, s.crew, func() error { return s.inspect(ctx) })
	return errors.Join(err, ended)
}

func (s *Store) inspect(ctx context.Context) error {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.done.Load() {
		return nil
	}
	info, err := s.client.Info(ctx, "server").Result()
	if err == nil {
		err = checkVersion(info)
	} else if err = s.unchecked("its version", err); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	config, err := s.client.ConfigGet(ctx, "maxmemory-policy").Result()
	if err != nil {
		err = s.unchecked("that its maxmemory-policy is noeviction", err)
	} else if policy, ok := config["maxmemory-policy"]; ok && policy != "noeviction" {
		err = fmt.Errorf("redis: the server's maxmemory-policy is %s, so it may evict jobs and leases; set it to noeviction", policy)
	}
	s.server.done.Store(err == nil)
	return err
}

// unchecked warns of what the server keeps to itself; an error of the network
// stays one.
func (s *Store) unchecked(what string, err error) error {
	text := err.Error()
	if !strings.HasPrefix(text, "ERR ") && !strings.HasPrefix(text, "NOPERM ") {
		return translate(err)
	}
	s.logger.Warn("redis: the server does not let us check "+what+"; make sure of it", "error", text)
	return nil
}

// checkVersion reads the reply to INFO.
func checkVersion(info string) error {
	_, version, found := strings.Cut(info, "redis_version:")
	version, _, _ = strings.Cut(version, "\r\n")
	major, _, _ := strings.Cut(version, ".")
	if n, err := strconv.Atoi(major); !found || err != nil || n < oldest {
		return fmt.Errorf("redis: the server has version %q; use Redis %d.0 or later, or Valkey", version, oldest)
	}
	return nil
}
