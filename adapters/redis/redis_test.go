package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
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
		{"cancelled", fmt.Errorf("dial: %w", context.Canceled), context.Canceled},
		{"too late", fmt.Errorf("dial: %w", context.DeadlineExceeded), context.DeadlineExceeded},
		{"wrong password", serverError("WRONGPASS invalid username-password pair or user is disabled."), ports.ErrUnusable},
		{"no password", serverError("NOAUTH Authentication required."), ports.ErrUnusable},
		{"no rights", serverError("NOPERM User skein has no permissions to run the 'evalsha' command"), ports.ErrUnusable},
		{"no database", serverError("ERR DB index is out of range"), ports.ErrUnusable},
		{"protected", serverError("DENIED Redis is running in protected mode"), ports.ErrUnusable},
		{"no Cluster", serverError("ERR This instance has cluster support disabled"), ports.ErrUnusable},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := translate(tt.err); !errors.Is(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
	if got := translate(goredis.Nil); got != nil {
		t.Errorf("nothing found gave %v", got)
	}
	var driver goredis.Error
	if got := translate(serverError("ERR boom")); errors.As(got, &driver) || !strings.Contains(got.Error(), "boom") {
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
		"BUSY Redis is busy running a script. You can only call SCRIPT KILL or": false,
	} {
		if got := refused(serverError(text)); got != want {
			t.Errorf("%s: got %t, want %t", text, got, want)
		}
	}
	if refused(nil) || refused(errors.New("TRYAGAIN")) {
		t.Error("only what a server says is a refusal")
	}
}

func TestVersionIsChecked(t *testing.T) {
	for version, ok := range map[string]bool{"7.0.0": true, "7.2.4": true, "8.0.1": true, "10.0": true, "6.2.14": false, "": false, "x": false} {
		if err := parseVersion("# Server\r\nredis_version:" + version + "\r\nredis_mode:standalone\r\n"); (err == nil) != ok {
			t.Errorf("version %q: %v", version, err)
		}
	}
}

func TestPrefixHasNoBraces(t *testing.T) {
	client := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:0"})
	defer client.Close()
	_, err := New(client, Options{Prefix: "{tenant}:"}).Queues(t.Context())
	if !errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "braces") {
		t.Errorf("got %v, want %v because of braces", err, ports.ErrUnusable)
	}
}

func TestKeysOfAShardShareItsTag(t *testing.T) {
	s := New(nil, Options{Prefix: "p:"})
	seen := map[string]bool{}
	shard := core.Shard{Queue: "a-b", Index: 3}
	for _, name := range append(s.firstKeys(shard, allKeys), s.channel(shard)) {
		key := name.(string)
		if !strings.HasPrefix(key, "p:{a-b/3}:") || seen[key] {
			t.Errorf("the key %q", key)
		}
		seen[key] = true
	}
}
