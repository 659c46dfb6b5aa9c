package redis

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// permanentErrors are the beginnings, after an optional "ERR ", of errors that waiting does not
// end, and the cures. A server returns them before it has run anything. The errors of a restart or
// a failover, such as LOADING, READONLY and CLUSTERDOWN, are not among them.
var permanentErrors = []struct{ prefix, advice string }{
	{"WRONGPASS", "correct the user and the password with which the client connects"},
	{"NOAUTH", "connect with the server's password; a URL has it as redis://USER:PASSWORD@HOST:PORT"},
	{"NOPERM", "grant the user the rights that docs/operations/redis.md lists"},
	{"DENIED", "set a password on the server, or change its protected-mode or bind"},
	{"DB index is out of range", "connect to a database that the server has; a URL has its number as redis://HOST:PORT/0"},
	{"SELECT is not allowed in cluster mode", "connect to database 0"},
	{"This instance has cluster support disabled", "connect to it as to a single server: by a URL redis://HOST:PORT, or in a program by goredis.NewClient"},
	{"Error compiling script", "use Redis 7.0 or later, or Valkey"},
}

// ErrTorn reports a shard with contradictory keys. It is wrapped by an error of unknown outcome.
//
// One cause is a failover during the migration of the shard's slot: two masters of a Cluster then
// have keys of the shard, and a call misses a key that another key refers to. Another cause is a
// declared shard whose record is gone. The queue's other shards continue to work.
// docs/operations/redis.md describes the repair. If a key is only lost, the store sets its record
// aside instead.
var ErrTorn = errors.New("the keys of a shard contradict each other, as after a failover during the migration of its slot; docs/operations/redis.md describes the repair")

// luaFault is in the error of one of the store's scripts that misses something that another key
// refers to, and does not check for it.
var luaFault = regexp.MustCompile(`attempt to |bad argument #`)

// advice returns the cure for a permanent error, and "" for any other error.
func advice(err error) string {
	for _, e := range permanentErrors {
		if goredis.HasErrorPrefix(err, e.prefix) {
			return e.advice
		}
	}
	return ""
}

// translate returns the port's error for an error of the driver. An error of unknown outcome keeps
// its text, and of its type only whether the server was reached.
func translate(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, goredis.Nil):
		return nil
	case goredis.HasErrorPrefix(err, "OOM"):
		return storekit.Full(fmt.Sprintf("the error of Redis is %q", err.Error()))
	}
	if ended := storekit.Interrupted(ctx, err); ended != nil {
		return fmt.Errorf("redis: %w", ended)
	}
	if what := advice(err); what != "" {
		return fmt.Errorf("%w: the error of Redis is %q; %s", ports.ErrUnusable, err.Error(), what)
	}
	if m := damagedRecord.FindStringSubmatch(err.Error()); m != nil && !broken(err) {
		return newDamagedError(m, err)
	}
	if !broken(err) && luaFault.MatchString(err.Error()) {
		return fmt.Errorf("redis: %w: %v", ErrTorn, err)
	}
	return storekit.UnknownOutcome("redis", err)
}
