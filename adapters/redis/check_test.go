package redis

import (
	"errors"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

func TestAStoreWithoutAClientSaysSo(t *testing.T) {
	var client *goredis.Client
	for name, store := range map[string]*Store{"nil": New(nil, Options{}), "a nil pointer": New(client, Options{})} {
		if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1}); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Declare = %v, want ErrUnusable", name, err)
		}
		if err := store.Ping(t.Context()); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Ping = %v, want ErrUnusable", name, err)
		}
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
