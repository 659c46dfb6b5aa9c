package redis

import (
	"errors"
	"strings"
	"testing"
	"time"

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

// unknownClient is a client of a kind that the store does not know.
type unknownClient struct{ *goredis.Client }

func TestClientsThatDoNotFitAreRefused(t *testing.T) {
	one := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:0", ReadTimeout: 2 * time.Second})
	defer one.Close()
	patient := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:0", ReadTimeout: -1})
	defer patient.Close()
	ring := goredis.NewRing(&goredis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:0"}})
	defer ring.Close()
	cluster := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:0"}, ReadTimeout: time.Second})
	defer cluster.Close()
	for _, tt := range []struct {
		name   string
		client goredis.UniversalClient
		o      Options
		says   string // "" if the client fits
	}{
		{name: "a ring", client: ring, says: "*redis.Ring"},
		{name: "a kind of its own", client: unknownClient{one}, says: "unknownClient"},
		{name: "a wait as long as a reply may take", client: one, o: Options{WaitReplicas: 1, WaitTimeout: 2 * time.Second}, says: "ReadTimeout of 2s"},
		{name: "the same of a Cluster", client: cluster, o: Options{WaitReplicas: 1}, says: "ReadTimeout of 1s"},
		{name: "a shorter wait", client: one, o: Options{WaitReplicas: 1}},
		{name: "a wait for nobody", client: one, o: Options{WaitTimeout: time.Minute}},
		{name: "a wait for replies without an end", client: patient, o: Options{WaitReplicas: 1, WaitTimeout: time.Hour}},
	} {
		err := New(tt.client, tt.o).checkClient()
		if refused := errors.Is(err, ports.ErrUnusable); refused != (tt.says != "") || refused && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want ErrUnusable with %q", tt.name, err, tt.says)
		}
	}
	if _, err := New(ring, Options{}).Queues(t.Context()); !errors.Is(err, ports.ErrUnusable) {
		t.Errorf("the first call through a ring: %v", err)
	}
}
