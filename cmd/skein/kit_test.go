package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/rogpeppe/go-internal/testscript"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// mainVariable makes the program of the tests the command itself.
const mainVariable = "SKEIN_TEST_MAIN"

// TestMain silences the client's log: scripts name stores that are not there.
func TestMain(m *testing.M) {
	if os.Getenv(mainVariable) != "" {
		main()
	}
	logging.Disable()
	os.Exit(m.Run())
}

// memories are the stores of memory:// URLs, kept between the commands of a test.
type memories struct {
	mu     sync.Mutex
	stores map[string]*memory.Store
}

func (m *memories) connect(ctx context.Context, rawURL string) (*backends.Backend, error) {
	if !strings.HasPrefix(rawURL, "memory://") {
		return backends.Connect(ctx, rawURL)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stores[rawURL] == nil {
		m.stores[rawURL] = memory.New(memory.Options{})
	}
	return &backends.Backend{Store: m.stores[rawURL], Close: func() error { return nil }}, nil
}

// runOn runs a command on a store.
func runOn(t *testing.T, store ports.ShardStore, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return runUntil(t.Context(), store, args...)
}

// runUntil runs a command on a store, until ctx ends.
func runUntil(ctx context.Context, store ports.ShardStore, args ...string) (code int, stdout, stderr string) {
	return runFrom(ctx, "", store, args...)
}

// runFrom runs a command on a store, with a standard input.
func runFrom(
	ctx context.Context,
	stdin string,
	store ports.ShardStore,
	args ...string,
) (code int, stdout, stderr string) {
	connect := func(context.Context, string) (*backends.Backend, error) {
		return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
	}
	var out, problems strings.Builder
	p := process{
		stdin:   strings.NewReader(stdin),
		stdout:  &out,
		stderr:  &problems,
		env:     func(string) string { return "" },
		connect: connect,
	}
	code = p.run(ctx, append(args, "--url", "memory://"))
	return code, out.String(), problems.String()
}

// storesOfTests are the URLs of a new store of each kind.
func storesOfTests() map[string]func(*testing.T) string {
	var names atomic.Int32
	return map[string]func(*testing.T) string{
		"Memory": func(*testing.T) string { return fmt.Sprint("memory://", names.Add(1)) },
		"Redis": func(t *testing.T) string {
			return testservers.RedisURL(t) + "?prefix=" + testservers.Prefix(t, testservers.Redis(t))
		},
		"Cluster": func(t *testing.T) string {
			cluster := testservers.RedisCluster(t).(*goredis.ClusterClient)
			return with(clusterURL(cluster), "prefix", testservers.Prefix(t, cluster))
		},
		"Postgres": func(t *testing.T) string {
			pool := testservers.Postgres(t)
			schema := testservers.Schema(t, pool)
			if err := postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{Schema: schema}); err != nil {
				t.Fatal(err)
			}
			return with(testservers.PostgresURL(t), "schema", schema)
		},
	}
}

// onServers runs a test on a new store of each kind that several processes can share.
func onServers(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	for name, newStore := range storesOfTests() {
		if name == "Memory" {
			continue // each process would have a store of its own
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newStore(t))
		})
	}
}

// clusterURL names all nodes that a client of a Cluster knows.
func clusterURL(cluster *goredis.ClusterClient) string {
	addresses := cluster.Options().Addrs
	return "redis-cluster://" + addresses[0] + "?" + url.Values{"addr": addresses[1:]}.Encode()
}

// with adds a parameter to a URL.
func with(rawURL, name, value string) string {
	between := "?"
	if strings.Contains(rawURL, "?") {
		between = "&"
	}
	return rawURL + between + name + "=" + value
}

// TestScripts runs the scripts of testdata/script on each store. In them "skein CODE ARGUMENT..."
// runs the command and wants that exit code; a last argument "<FILE" is its standard input. "serve
// QUEUE fail|hold" runs a server: until each due job of the queue has failed once, or until the
// script ends with all jobs in their handlers. "interrupted TEXT CODE ARGUMENT..." is "skein" with
// a signal as soon as it has written the text; $FIRST and $CONTINUE are the first and the last
// text to continue with that it has printed. "damage QUEUE ID" overwrites the job's record in
// Redis, and "key" makes $KEY of the first key in the JSON that was written last. "schema" sets
// $SCHEMA to the schema of the store's URL. "other" makes a second store, the profile "other",
// and "same" makes the profile "same" of the store of the script. "schedule QUEUE NAME CRON ZONE
// ID..." stores a schedule with the payload "p" for each id. "done QUEUE ID RESULT" ends the due job
// of an id, of a queue with one shard, as done by the server blue, and records that with the result.
func TestScripts(t *testing.T) {
	for name, newURL := range storesOfTests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := &memories{stores: map[string]*memory.Store{}}
			testscript.Run(t, testscript.Params{
				Dir:                "testdata/script",
				RequireUniqueNames: true,
				UpdateScripts:      *update,
				Setup: func(e *testscript.Env) error {
					e.Setenv("SKEIN_URL", newURL(t))
					return nil
				},
				Condition: func(condition string) (bool, error) { return condition == strings.ToLower(name), nil },
				Cmds: map[string]func(*testscript.TestScript, bool, []string){
					"skein": func(ts *testscript.TestScript, neg bool, args []string) {
						runCommand(ts, neg, args, kept)
					},
					"interrupted": func(ts *testscript.TestScript, neg bool, args []string) {
						interrupt(ts, neg, args, kept)
					},
					"damage": damage,
					"key":    findKey,
					"other": func(ts *testscript.TestScript, _ bool, _ []string) {
						writeProfile(ts, "other", newURL(t))
					},
					"same": func(ts *testscript.TestScript, _ bool, _ []string) {
						writeProfile(ts, "same", ts.Getenv("SKEIN_URL"))
					},
					"schema": findSchema,
					"schedule": func(ts *testscript.TestScript, _ bool, args []string) {
						storeSchedules(ts, args, kept)
					},
					"done": func(ts *testscript.TestScript, _ bool, args []string) {
						recordDone(ts, args[0], args[1], args[2], kept)
					},
					"serve": func(ts *testscript.TestScript, neg bool, args []string) {
						serveJobs(ts, args[0], args[1], kept)
					},
				},
			})
		})
	}
}

// writeProfile is "other" and "same": it makes a file of profiles with one store.
func writeProfile(ts *testscript.TestScript, name, url string) {
	file := ts.MkAbs("profiles")
	ts.Check(os.WriteFile(file, []byte(name+" "+url+"\n"), 0o600))
	ts.Setenv("SKEIN_PROFILES", file)
}

// runCommand is "skein CODE ARGUMENT... [<FILE]".
func runCommand(ts *testscript.TestScript, neg bool, args []string, kept *memories) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: skein CODE ARGUMENT... [<FILE]")
	}
	call(context.Background(), ts, args, kept, ts.Stdout(), ts.Stderr())
}

func call(ctx context.Context, ts *testscript.TestScript, args []string, kept *memories, stdout, stderr io.Writer) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	args = args[1:]

	var stdin io.Reader = strings.NewReader("")
	if last := len(args) - 1; last >= 0 && strings.HasPrefix(args[last], "<") {
		stdin, args = strings.NewReader(ts.ReadFile(args[last][1:])), args[:last]
	}

	p := process{
		stdin:         stdin,
		stdout:        stdout,
		stderr:        stderr,
		env:           ts.Getenv,
		connect:       kept.connect,
		answersWithin: time.Minute,
	}
	if got := p.run(ctx, args); got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// signalling is a writer that calls stop once a text was written.
type signalling struct {
	io.Writer
	mu      *sync.Mutex
	written *strings.Builder
	text    string
	stop    func()
}

func (s signalling) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.written.Write(p)
	if strings.Contains(s.written.String(), s.text) {
		s.stop()
	}
	return s.Writer.Write(p)
}

var goOn = regexp.MustCompile(`--continue (\S+)`)

// interrupt is "interrupted TEXT CODE ARGUMENT...".
func interrupt(ts *testscript.TestScript, _ bool, args []string, kept *memories) {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	s := signalling{mu: new(sync.Mutex), written: new(strings.Builder), text: args[0], stop: stop}
	stdout, stderr := s, s
	stdout.Writer, stderr.Writer = ts.Stdout(), ts.Stderr()
	call(ctx, ts, args[1:], kept, stdout, stderr)
	if found := goOn.FindAllStringSubmatch(s.written.String(), -1); found != nil {
		ts.Setenv("CONTINUE", found[len(found)-1][1])
		ts.Setenv("FIRST", found[0][1])
	}
}

// damage is "damage QUEUE ID", of a queue with one shard.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	u, err := url.Parse(ts.Getenv("SKEIN_URL"))
	ts.Check(err)
	prefix := u.Query().Get("prefix")
	u.RawQuery = ""
	o, err := goredis.ParseURL(u.String())
	ts.Check(err)
	client := goredis.NewClient(o)
	defer func() { ts.Check(client.Close()) }()
	added, err := client.HSet(context.Background(), prefix+"{"+args[0]+"/0}:j", args[1], "garbage").Result()
	ts.Check(err)
	if added != 0 {
		ts.Fatalf("queue %s has no job %s", args[0], args[1])
	}
}

func findKey(ts *testscript.TestScript, _ bool, _ []string) {
	found := regexp.MustCompile(`"key": "([^"]*)"`).FindStringSubmatch(ts.ReadFile("stdout"))
	if found == nil {
		ts.Fatalf("no key was written")
	}
	ts.Setenv("KEY", found[1])
}

// findSchema sets $SCHEMA to the schema of the store's URL.
func findSchema(ts *testscript.TestScript, _ bool, _ []string) {
	u, err := url.Parse(ts.Getenv("SKEIN_URL"))
	ts.Check(err)
	ts.Setenv("SCHEMA", u.Query().Get("schema"))
}

// serveJobs runs a server on a queue.
func serveJobs(ts *testscript.TestScript, name, how string, kept *memories) {
	b, err := kept.connect(context.Background(), ts.Getenv("SKEIN_URL"))
	ts.Check(err)
	i := inspect.New(b.Store, inspect.Options{})
	known, err := i.Stats(context.Background(), name)
	ts.Check(err)

	// Retries don't come due, and leases don't expire, however slow the machine is.
	queue := skein.NewQueue(name, skein.QueueOptions[[]byte]{
		Codec: raw{}, Shards: known[0].Queue.Shards, IndexIDs: known[0].Queue.IndexIDs,
		Backoff: func(int) time.Duration { return 24 * time.Hour },
	})
	server := skein.NewServer(b.Store, skein.ServerOptions{
		Name:            "node",
		Lanes:           50,
		LeaseTTL:        10 * time.Minute,
		ShutdownTimeout: 10 * time.Millisecond,
		Logger:          slog.New(slog.DiscardHandler),
	}, queue.Each(func(ctx context.Context, _ string, _ []byte) error {
		if how == "hold" {
			<-ctx.Done()
			return ctx.Err()
		}
		return errors.New("boom")
	}))

	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()

	finish := func() {
		stop()
		<-ended
		_ = b.Close()
	}

	for deadline := time.Now().Add(testservers.Patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		s, err := i.Stats(context.Background(), name)
		ts.Check(err)
		if c := s[0].Counts; how == "hold" && c.Claimed > 0 && c.Length() == 0 {
			ts.Defer(finish)
			return
		} else if how == "fail" && c.Retrying > 0 && c.Claimed == 0 && c.Lag == 0 {
			finish()
			return
		}
	}
	finish()
	ts.Fatalf("no job was run")
}

// recordDone is "done QUEUE ID RESULT".
func recordDone(ts *testscript.TestScript, queue, id, result string, kept *memories) {
	ctx := context.Background()
	b, err := kept.connect(ctx, ts.Getenv("SKEIN_URL"))
	ts.Check(err)
	defer func() { ts.Check(b.Close()) }()

	shard := core.Shard{Queue: queue}
	lease, err := b.Store.Acquire(ctx, ports.AcquireRequest{
		Shard: shard, Shards: 1, Generation: 1, Owner: "owner of " + id, Attempt: 1, TTL: 10 * time.Minute,
	})
	ts.Check(err)
	turn := ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: "owner of " + id, Token: lease.Token},
		Number: 1,
		TTL:    10 * time.Minute,
		Node:   "blue",
		Want:   1,
	}
	reply, err := b.Store.Turn(ctx, turn)
	ts.Check(err)
	if len(reply.Claims) != 1 || reply.Claims[0].ID != id {
		ts.Fatalf("claimed %+v, want %s", reply.Claims, id)
	}

	settled := core.RetryPolicy{}.Settlement(&reply.Claims[0], &core.Outcome{Kind: core.Done}, 0)
	settled.Record(&reply.Claims[0], core.Run{Took: 12 * time.Millisecond, Node: "blue", Result: []byte(result)})
	turn.Number, turn.Want, turn.Settlements = reply.Last+1, 0, []core.Settlement{settled}
	turn.Keep = core.KeepPast{Age: time.Hour}
	_, err = b.Store.Turn(ctx, turn)
	ts.Check(err)
	ts.Check(b.Store.Release(ctx, turn.Lease))
}

// storeSchedules is "schedule QUEUE NAME CRON ZONE ID...".
func storeSchedules(ts *testscript.TestScript, args []string, kept *memories) {
	b, err := kept.connect(context.Background(), ts.Getenv("SKEIN_URL"))
	ts.Check(err)
	defer func() { ts.Check(b.Close()) }()
	queue := skein.NewQueue(args[0], skein.QueueOptions[[]byte]{Codec: raw{}, Shards: 2})
	client := skein.NewClient(b.Store, skein.ClientOptions{})
	for _, id := range args[4:] {
		ts.Check(queue.Schedule(context.Background(), client, args[1], skein.Cron(args[2], args[3]), id, []byte("p")))
	}
}

// raw is a codec of bytes.
type raw struct{}

func (raw) Encode(data []byte) ([]byte, error) { return data, nil }
func (raw) Decode(data []byte) ([]byte, error) { return bytes.Clone(data), nil }
