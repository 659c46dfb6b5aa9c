package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// runbook is the page of an alert.
type runbook struct {
	alert, text string
	// commands are the lines of its code that call skein.
	commands []string
}

// commandLine is a line of code in a page.
var commandLine = regexp.MustCompile(`(?m)^    (skein .*)$`)

func runbooks(t *testing.T) (pages []runbook) {
	t.Helper()
	text, err := os.ReadFile("../../docs/operations/runbooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range strings.Split(string(text), "\n## ")[1:] {
		alert, body, _ := strings.Cut(page, "\n")
		r := runbook{alert: alert, text: body}
		for _, line := range commandLine.FindAllStringSubmatch(body, -1) {
			r.commands = append(r.commands, line[1])
		}
		pages = append(pages, r)
	}
	return pages
}

// pageLinked is a page of the dashboard that a runbook names.
var pageLinked = regexp.MustCompile(`Dashboard: (?:[^.]*\b)?(Overview|Servers|Store|Running|Morgue|Jobs|Schedules|Shards|Unreadable|the page of the queue)\b`)

// Each page has the places to look at and the cures: commands, except where no command helps, a
// page of the dashboard, except where the dashboard has none, how to tell causes apart, and when
// to wake somebody.
func TestRunbooksAreWhole(t *testing.T) {
	pages := runbooks(t)
	if len(pages) < 17 {
		t.Errorf("%d runbooks, fewer than there were", len(pages))
	}
	for _, page := range pages {
		for _, part := range []string{"**It means:**", "**Look:**", "**Tell apart:**", "**Do:**", "**Wake somebody**"} {
			if !strings.Contains(page.text, part) {
				t.Errorf("%s has no part %s", page.alert, part)
			}
		}
		if len(page.commands) == 0 || page.alert != "SkeinExporterStale" && !pageLinked.MatchString(page.text) {
			t.Errorf("%s: a command and a page of the dashboard are wanted", page.alert)
		}
	}
}

// Each command of the runbooks has its effect, on Redis, and those that migrate on Postgres, in a
// queue with entries of every kind.
func TestCommandsOfRunbooksWork(t *testing.T) {
	t.Parallel()
	stores := storesOfTests()
	ran := make(map[string]bool)
	for _, page := range runbooks(t) {
		for _, line := range page.commands {
			if ran[line] {
				continue
			}
			ran[line] = true

			store := "Redis"
			if strings.HasPrefix(line, "skein migrate ") {
				store = "Postgres"
			}
			t.Run(page.alert+"/"+strings.ReplaceAll(line, " ", "_"), func(t *testing.T) {
				runLine(t, stores[store](t), line)
			})
		}
	}
}

// runLine runs a line of a runbook, with the words in capitals replaced, and fails if it does not
// end with 0.
func runLine(t *testing.T, rawURL, line string) {
	t.Helper()
	b, err := backends.Connect(t.Context(), rawURL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()

	line, _, _ = strings.Cut(line, " > ") // which a shell carries out, like what follows a backslash
	line = strings.TrimSuffix(line, ` \`)
	words := strings.Fields(line)[1:]

	replaced := map[string]string{"QUEUE": "orders", "ID": "42", "NAME": "nightly", "NODE": "web-1", `"$P"`: "sent"}
	if strings.HasPrefix(line, "skein queue forget ") {
		replaced["QUEUE"] = "unused"
	}
	if strings.HasPrefix(line, "skein job release ") {
		replaced["ID"] = "44" // the job is not due
	}
	replaced["GROUP"] = fillStore(t, b.Store)
	if strings.HasPrefix(line, "skein repair discard ") {
		replaced["INDEX"], replaced["KEY"] = "0", setAside(t, rawURL)
	}

	for at, word := range words {
		if with, known := replaced[word]; known {
			words[at] = with
		}
	}

	var stdout, stderr written
	ctx, stop := context.WithTimeout(t.Context(), testservers.Patience)
	defer stop()
	live, end := context.WithCancel(ctx)
	defer end()
	p := process{
		stdin:         strings.NewReader(""),
		stdout:        &stdout,
		stderr:        &stderr,
		env:           env(rawURL),
		connect:       backends.Connect,
		answersWithin: testservers.Patience,
	}

	if words[0] == "top" { // until Ctrl-C
		go func() {
			for ; ctx.Err() == nil && !strings.Contains(stdout.String(), "orders"); time.Sleep(time.Millisecond) {
			}
			end()
		}()
	}

	code := p.run(live, words)
	want := map[string]int{"doctor": 6}[words[0]] // Redis as tests start it keeps nothing on disk
	if code != want {
		t.Errorf("%s ends with %d:\n%s%s", line, code, stdout.String(), stderr.String())
	}
	if ctx.Err() != nil {
		t.Errorf("%s does not end", line)
	}
}

func env(rawURL string) func(string) string {
	return func(name string) string {
		return map[string]string{"SKEIN_URL": rawURL}[name]
	}
}

// fillStore gives a store a server web-1 and a queue orders whose id 42 is dead, claimed and
// queued after a failure and has a schedule, and an empty queue. It returns the group of the dead
// letter.
func fillStore(t *testing.T, store ports.ShardStore) (group string) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	const ttl = time.Hour
	shard := core.Shard{Queue: "orders"}
	for _, queue := range []string{"orders", "unused"} {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 1})
		must(err)
	}

	_, err := store.Announce(t.Context(), ports.AnnounceRequest{
		Node: ports.Node{Owner: "owner", Name: "web-1", Queues: []string{"orders"}},
		TTL:  ttl,
	})
	must(err)
	lease, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Owner:      "owner",
		Attempt:    1,
		TTL:        ttl,
	})
	must(err)

	number := int64(0)
	turn := func(want int, settle ...core.Settlement) []core.Claim {
		number++
		reply, err := store.Turn(t.Context(), ports.TurnRequest{
			Lease:       ports.Lease{Shard: shard, Owner: "owner", Token: lease.Token},
			TTL:         ttl,
			Node:        "web-1",
			Number:      number,
			Want:        want,
			Settlements: settle,
		})
		must(err)
		return reply.Claims
	}

	claim := func() *core.Claim {
		_, err := store.Push(t.Context(), ports.PushRequest{
			Queue:      "orders",
			Shards:     1,
			Generation: 1,
			Entries:    []core.Entry{{ID: "42", Payload: core.Payload{Data: []byte("paid")}}},
		})
		must(err)
		for range 1000 { // a store may need a turn to find the latest pushes
			if claims := turn(1); len(claims) > 0 {
				return &claims[0]
			}
		}
		t.Fatal("no job was claimed")
		return nil
	}

	policy := core.RetryPolicy{MaxRetries: 25, Backoff: func(int, int) time.Duration { return time.Hour }}
	end := func(kind core.OutcomeKind) {
		turn(0, policy.Settlement(claim(), &core.Outcome{Kind: kind, Error: "no such account"}, 0))
	}

	end(core.Buried)
	claim()
	_, err = store.Push(t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: []core.Entry{
		{ID: "44", Payload: core.Payload{Data: []byte("sent")}, When: core.In(time.Hour)},
		{ID: "42", Payload: core.Payload{Data: []byte("sent")}},
		{ID: "43", Payload: core.Payload{Data: []byte("paid")}},
	}})
	must(err)

	storeSchedule(t, store, "42", "nightly")

	found, err := inspect.New(store, inspect.Options{}).Groups(t.Context(), "orders", 0)
	if must(err); len(found.Groups) != 1 {
		t.Fatalf("%d groups of dead letters, want 1", len(found.Groups))
	}
	return found.Groups[0].Name
}

// storeSchedule stores a schedule of every hour in the queue orders of one shard.
func storeSchedule(t *testing.T, store ports.ShardStore, id, name string) {
	t.Helper()
	d := core.Declaration{
		ScheduleKey: core.ScheduleKey{ID: id, Name: name},
		Recurrence:  core.Recurrence{Spec: "every 1h0m0s 0", Data: []byte("sent")},
	}
	spec, err := core.ParseSpec(d.Spec, time.UTC)
	if err != nil {
		t.Fatal(err)
	}

	s, _ := d.Apply(core.Schedule{}, spec, "code", core.InstantOf(time.Now()))
	_, err = store.ChangeSchedules(t.Context(), ports.ChangeSchedulesRequest{
		Shard:      core.Shard{Queue: "orders"},
		Shards:     1,
		Generation: 1,
		Changes:    []ports.ScheduleChange{{ScheduleKey: d.ScheduleKey, Schedule: &s}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// setAside overwrites the job 43 in Redis and returns the key of the record that is set aside for
// it.
func setAside(t *testing.T, rawURL string) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}

	prefix := u.Query().Get("prefix")
	u.RawQuery = ""
	o, err := goredis.ParseURL(u.String())
	if err != nil {
		t.Fatal(err)
	}

	client := goredis.NewClient(o)
	defer func() { _ = client.Close() }()
	if err := client.HSet(t.Context(), prefix+"{orders/0}:j", "43", "garbage").Err(); err != nil {
		t.Fatal(err)
	}

	for _, words := range [][]string{
		{"job", "get", "orders", "43"},
		{"repair", "recount", "orders"},
		{"repair", "ls", "orders", "-o", "json"},
	} {
		var stdout, stderr bytes.Buffer
		p := process{
			stdin:   strings.NewReader(""),
			stdout:  &stdout,
			stderr:  &stderr,
			env:     env(rawURL),
			connect: backends.Connect,
		}
		if code := p.run(t.Context(), words); code != 0 {
			t.Fatalf("%v ends with %d: %s", words, code, stderr.String())
		}

		var records []struct{ Key string }
		if words[1] == "ls" {
			if err := json.Unmarshal(stdout.Bytes(), &records); err != nil || len(records) != 1 {
				t.Fatalf("%d records are set aside, %v: %s", len(records), err, stdout.String())
			}
			return records[0].Key
		}
	}
	return ""
}

// A wrong clock of the store can be seen beside one's own: AS OF is the store's. One that is set
// back makes no shard unowned, and one that is set forward lets another server take a lease that
// its owner has not renewed since.
func TestAClockOfTheStoreThatWasSetIsSeen(t *testing.T) {
	now := time.Date(2031, 5, 4, 3, 2, 1, 0, time.UTC)
	store := memory.New(memory.Options{Clock: func() time.Time { return now }})
	const ttl = 10 * time.Second

	acquire := func(owner string) error {
		_, err := store.Acquire(t.Context(), ports.AcquireRequest{
			Shard:      core.Shard{Queue: "orders"},
			Shards:     1,
			Generation: 1,
			Owner:      owner,
			Attempt:    1,
			TTL:        ttl,
		})
		return err
	}

	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	must(t, acquire("a"))

	shown := func() string {
		var stdout, stderr bytes.Buffer
		p := process{
			stdin:  strings.NewReader(""),
			stdout: &stdout,
			stderr: &stderr,
			env:    env("memory://"),
			connect: func(context.Context, string) (*backends.Backend, error) {
				return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
			},
		}
		if code := p.run(t.Context(), []string{"stats", "orders", "-o", "jsonl"}); code != 0 {
			t.Fatalf("stats ends with %d: %s", code, stderr.String())
		}
		return stdout.String()
	}

	for _, step := range []struct {
		by   time.Duration
		want string
		err  error
	}{
		{0, `"as_of":"2031-05-04T03:02:01Z"`, ports.ErrLeaseHeld},
		{-time.Hour, `"as_of":"2031-05-04T02:02:01Z"`, ports.ErrLeaseHeld},
		{2 * time.Hour, `"as_of":"2031-05-04T04:02:01Z"`, nil},
	} {
		now = now.Add(step.by)
		text := shown()
		if !strings.Contains(text, step.want) || strings.Contains(text, `"unowned":0`) != (step.err != nil) {
			t.Errorf("after %v stats shows %s, want %s", step.by, text, step.want)
		}
		if err := acquire("b"); !errors.Is(err, step.err) {
			t.Errorf("after %v another owner's acquire: %v, want %v", step.by, err, step.err)
		}
	}
}
