package exchange

import (
	"errors"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// serverError is an error reply.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}

var _ goredis.Error = serverError("")

func TestErrorsAreTranslated(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"full", serverError("OOM command not allowed when used memory > 'maxmemory'."), ports.ErrFull},
		{
			"wrong password",
			serverError("WRONGPASS invalid username-password pair or user is disabled."),
			ports.ErrUnusable,
		},
		{"no password", serverError("NOAUTH Authentication required."), ports.ErrUnusable},
		{
			"no rights",
			serverError("NOPERM User skein has no permissions to run the 'evalsha' command"),
			ports.ErrUnusable,
		},
		{"no database", serverError("ERR DB index is out of range"), ports.ErrUnusable},
		{"protected", serverError("DENIED Redis is running in protected mode"), ports.ErrUnusable},
		{"no Cluster", serverError("ERR This instance has cluster support disabled"), ports.ErrUnusable},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := Translate(t.Context(), tt.err); !errors.Is(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}

	if got := Translate(t.Context(), goredis.Nil); got != nil {
		t.Errorf("nothing found gave %v", got)
	}
	var driver goredis.Error
	if got := Translate(t.Context(), serverError("ERR boom")); errors.As(got, &driver) ||
		!strings.Contains(got.Error(), "boom") {
		t.Errorf("got %v, want its text without its type", got)
	}
}

func TestRefusedScriptsAreKnown(t *testing.T) {
	for text, want := range map[string]bool{
		"TRYAGAIN Multiple keys request during rehashing of slot":               true,
		"LOADING Redis is loading the dataset in memory":                        true,
		"READONLY Can not run script with write flag on readonly replica.":      true,
		"CLUSTERDOWN Hash slot not served":                                      true,
		"ERR Script attempted to access a non local key in a cluster node":      true,
		"ERR user_script:7: bad argument":                                       false,
		"WRONGTYPE Operation against a key holding the wrong kind of value":     false,
		"OOM command not allowed when used memory > 'maxmemory'.":               false,
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or": true,
		"BUSYGROUP Consumer Group name already exists":                          false,
		"NOREPLICAS Not enough good replicas to write.":                         true,
		"MISCONF Redis is configured to save RDB snapshots, but":                true,
	} {
		if got := Retryable(serverError(text)); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}

	if Retryable(nil) || Retryable(errors.New("TRYAGAIN")) {
		t.Error("only what a server says is a refusal")
	}
}

// The errors of a restart, a failover or a resharding pass by themselves, so they are an outage of
// unknown outcome and never end a server.
func TestOutagesStayOutages(t *testing.T) {
	for _, text := range []string{
		"LOADING Redis is loading the dataset in memory",
		"READONLY You can't write against a read only replica.",
		"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
		"CLUSTERDOWN The cluster is down",
		"TRYAGAIN Multiple keys request during rehashing of slot",
		"MOVED 3999 127.0.0.1:6381",
		"ASK 3999 127.0.0.1:6381",
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
		"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
		"NOREPLICAS Not enough good replicas to write.",
		"ERR max number of clients reached",
		"ERR Script attempted to access a non local key in a cluster node",
	} {
		err := Translate(t.Context(), serverError(text))
		if err == nil || storekit.HasKnownOutcome(err) {
			t.Errorf("%s became %v, which says that nothing was written", text, err)
		}
	}

	// An error that does not come from the server is none of the server's errors.
	if err := Translate(t.Context(), errors.New("WRONGPASS")); errors.Is(err, ports.ErrUnusable) {
		t.Errorf("a text of somebody else became %v", err)
	}
}
