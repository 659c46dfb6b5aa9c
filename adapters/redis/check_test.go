package redis

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

func TestAStoreWithoutAClientSaysSo(t *testing.T) {
	var client *goredis.Client
	var cluster *goredis.ClusterClient

	for name, store := range map[string]*Store{
		"nil":           New(nil, Options{}),
		"a nil pointer": New(client, Options{}),
		"a nil Cluster": New(cluster, Options{}),
	} {
		if _, err := store.Declare(t.Context(), ports.DeclareRequest{
			Queue: "orders", Shards: 1,
		}); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Declare = %v, want ErrUnusable", name, err)
		}
		if err := store.Ping(t.Context()); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Ping = %v, want ErrUnusable", name, err)
		}
		if rows, err := store.Check(t.Context()); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Check = %v, %v, want ErrUnusable", name, rows, err)
		}
		if _, err := store.Stats(t.Context(), ports.StatsRequest{
			Queues: []string{"orders"},
		}); !errors.Is(err, ports.ErrUnusable) {
			t.Errorf("%s: Stats = %v, want ErrUnusable", name, err)
		}
	}
}

func TestVersionIsChecked(t *testing.T) {
	for version, ok := range map[string]bool{
		"7.0.0": true, "7.2.4": true, "8.0.1": true, "10.0": true,
		"6.2.14": false, "": false, "x": false,
	} {
		if err := parseVersion("# Server\r\nredis_version:" + version +
			"\r\nredis_mode:standalone\r\n"); (err == nil) != ok {
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
	cluster := goredis.NewClusterClient(&goredis.ClusterOptions{
		Addrs:       []string{"127.0.0.1:0"},
		ReadTimeout: time.Second,
	})
	defer cluster.Close()

	for _, tt := range []struct {
		name   string
		client goredis.UniversalClient
		o      Options
		says   string // "" if the client fits
	}{
		{name: "a ring", client: ring, says: "*redis.Ring"},
		{name: "a kind of its own", client: unknownClient{one}, says: "unknownClient"},
		{
			name:   "a wait as long as a reply may take",
			client: one,
			o:      Options{WaitReplicas: 1, WaitTimeout: 2 * time.Second},
			says:   "waits only 2s for a reply (ReadTimeout)",
		},
		{
			name:   "the same of a Cluster",
			client: cluster,
			o:      Options{WaitReplicas: 1},
			says:   "waits only 1s for a reply (ReadTimeout)",
		},
		{name: "a shorter wait", client: one, o: Options{WaitReplicas: 1}},
		{name: "a wait for nobody", client: one, o: Options{WaitTimeout: time.Minute}},
		{
			name:   "a wait for replies without an end",
			client: patient,
			o:      Options{WaitReplicas: 1, WaitTimeout: time.Hour},
		},
	} {
		err := New(tt.client, tt.o).checkClient()
		if refused := errors.Is(err, ports.ErrUnusable); refused != (tt.says != "") ||
			refused && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: got %v, want ErrUnusable with %q", tt.name, err, tt.says)
		}
	}

	if _, err := New(ring, Options{}).Queues(t.Context()); !errors.Is(err, ports.ErrUnusable) {
		t.Errorf("the first call through a ring: %v", err)
	}
}

// A server is shown with its most important values: its version, how long it has been up, and its
// memory with the peak.
func TestFiguresOfAServer(t *testing.T) {
	f := parseInfo(
		"redis_version:7.2.4\r\nuptime_in_seconds:86400\r\n" +
			"used_memory:1048576\r\nused_memory_peak:3145728\r\nmaxmemory:0\r\n" +
			"connected_clients:6\r\nmaxclients:10000\r\n",
	)
	if got := f.version().Value; got != "redis 7.2.4, up for 1 day" {
		t.Errorf("version: %q", got)
	}
	if got := f.memory().Value; got != "1.0 MiB used, 3.0 MiB at its peak, no maxmemory" {
		t.Errorf("memory: %q", got)
	}

	f["valkey_version"], f["uptime_in_seconds"], f["maxmemory"] = "8.1.0", "1123199", "2097152"
	if got := f.version().Value; got != "valkey 8.1.0, up for 12 days" {
		t.Errorf("version: %q", got)
	}
	if got := f.memory().Value; got != "1.0 MiB used of 2.0 MiB, 50 %, 3.0 MiB at its peak" {
		t.Errorf("memory: %q", got)
	}

	for seconds, want := range map[string]string{"59": "0h0m", "3540": "0h59m", "86399": "23h59m"} {
		f["uptime_in_seconds"] = seconds
		if got := f.version().Value; got != "valkey 8.1.0, up for "+want {
			t.Errorf("%s s: %q", seconds, got)
		}
	}
}

// answers is a hook of a client that has no server: it answers each command by itself.
type answers goredis.ProcessHook

func (answers) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (a answers) ProcessHook(goredis.ProcessHook) goredis.ProcessHook { return goredis.ProcessHook(a) }

func (answers) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

// hanging is the server of a client that does not answer until it is back. Only calls that respect
// their context end before.
func hanging(back *atomic.Bool) answers {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if !back.Load() {
			<-ctx.Done()
			cmd.SetErr(ctx.Err())
			return ctx.Err()
		}

		switch c := cmd.(type) {
		case *goredis.Cmd: // the rights
			c.SetVal([]any{})
		case *goredis.StringCmd:
			if c.SetVal("redis_version:7.2.4\r\n"); c.Name() == "hget" { // the format
				c.SetErr(goredis.Nil)
			}
		}
		return cmd.Err()
	}
}

// A check of the server on a connection that is silently dead ends by itself, with a client that
// respects contexts and waits for replies without a limit. No caller's deadline ends a check that
// others wait for, and it holds up no call for ever.
func TestACheckOnADeadConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := goredis.NewClient(&goredis.Options{Addr: "10.0.0.1:1", ReadTimeout: -1, ContextTimeoutEnabled: true})
		defer client.Close()
		var back atomic.Bool
		client.AddHook(hanging(&back))
		store := New(client, Options{})

		ping := func() error {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			return store.Ping(ctx)
		}

		if err := ping(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while the server hangs: %v", err)
		}

		back.Store(true)
		time.Sleep(readyTimeout)
		if err := ping(); err != nil {
			t.Errorf("once it is back: %v", err)
		}
		time.Sleep(time.Second) // in which background work ends
	})
}
