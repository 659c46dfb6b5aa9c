package exchange

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis/internal/record"
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
	{
		"DB index is out of range",
		"connect to a database that the server has; a URL has its number as redis://HOST:PORT/0",
	},
	{"SELECT is not allowed in cluster mode", "connect to database 0"},
	{
		"This instance has cluster support disabled",
		"connect to it as to a single server: by a URL redis://HOST:PORT, or in a program by goredis.NewClient",
	},
	{"Error compiling script", "use Redis 7.0 or later, or Valkey"},
}

// ErrTorn reports a shard with contradictory keys. It is documented in package redis.
var ErrTorn = errors.New("the keys of a shard contradict each other, " +
	"as after a failover during the migration of its slot; " +
	"docs/operations/redis.md describes the repair")

// luaFault matches the error of a script that has used a missing value without a check. Another key
// refers to that value.
var luaFault = regexp.MustCompile(`attempt to |bad argument #`)

// Advice returns the cure for a permanent error, and "" for any other error.
func Advice(err error) string {
	for _, e := range permanentErrors {
		if goredis.HasErrorPrefix(err, e.prefix) {
			return e.advice
		}
	}
	return ""
}

// Translate returns the port's error for an error of the driver. An error of unknown outcome keeps
// its text. Its type is hidden, but [ports.FailureOf] still reports whether the server was reached.
func Translate(ctx context.Context, err error) error {
	switch {
	case err == nil || errors.Is(err, goredis.Nil):
		return nil
	case goredis.HasErrorPrefix(err, "OOM"):
		return storekit.Full(fmt.Sprintf("the error of Redis is %q", err.Error()))
	}

	if ended := storekit.Interrupted(ctx, err); ended != nil {
		return fmt.Errorf("redis: %w", ended)
	}
	if what := Advice(err); what != "" {
		return fmt.Errorf("%w: the error of Redis is %q; %s", ports.ErrUnusable, err.Error(), what)
	}
	if m := damagedRecord.FindStringSubmatch(err.Error()); m != nil && !Broken(err) {
		return newDamagedError(m, err)
	}
	if !Broken(err) && luaFault.MatchString(err.Error()) {
		return fmt.Errorf("redis: %w: %v", ErrTorn, err)
	}
	return storekit.UnknownOutcome("redis", err)
}

// damagedRecord matches the error of a script that can't read the record of an id: place and id, in
// hex, and whether a part of it is missing.
var damagedRecord = regexp.MustCompile(`damaged: ([qckds]) ([0-9a-f]*) (missing: )?`)

// DamagedError is the error of a script that can't read a record, or misses a part of it, and so
// has written nothing.
type DamagedError struct {
	// Place is a key of record.Places. ID is the id, or the field of a schedule.
	Place, ID string
	Text      string
	// Stored is the record of a schedule that a script could read, but the store could not.
	Stored string
	// Missing is true if a part is missing.
	Missing bool
}

// newDamagedError returns the error for the parts that damagedRecord has matched.
func newDamagedError(found []string, err error) error {
	id, badHex := hex.DecodeString(found[2])
	if badHex != nil {
		return fmt.Errorf("redis: %v", err)
	}
	return &DamagedError{Place: found[1], ID: string(id), Text: err.Error(), Missing: found[3] != ""}
}

// Error implements error.
func (e *DamagedError) Error() string {
	return fmt.Sprintf("redis: the %s record of id %q can't be read: %s", record.Places[e.Place], e.ID, e.Text)
}
