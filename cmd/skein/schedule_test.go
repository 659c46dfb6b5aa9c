package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// scheduleStore is a store whose clock stands at noon of a day in winter, with a schedule at 06:00
// in Berlin.
func scheduleStore(t *testing.T) (store *memory.Store, advance func(time.Duration)) {
	t.Helper()
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	store = memory.New(memory.Options{Clock: func() time.Time { return now }})
	q := skein.NewQueue("orders", skein.QueueOptions[[]byte]{Codec: raw{}, Shards: 1})
	client := skein.NewClient(store, skein.ClientOptions{})
	must(t, q.Schedule(t.Context(), client, "nightly", skein.Cron("0 6 * * *", "Europe/Berlin"), "a", []byte("p")))
	return store, func(d time.Duration) { now = now.Add(d) }
}

// runIn runs a command on a store, for a user in a time zone.
func runIn(t *testing.T, zone string, store ports.ShardStore, args ...string) (code int, out, said string) {
	t.Helper()
	location, err := time.LoadLocation(zone)
	must(t, err)
	var stdout, stderr strings.Builder
	p := process{
		stdin:  strings.NewReader(""),
		stdout: &stdout,
		stderr: &stderr,
		env:    func(string) string { return "" },
		zone:   location,
		connect: func(context.Context, string) (*backends.Backend, error) {
			return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
		},
	}

	code = p.run(t.Context(), append(args, "--url", "memory://"))
	return code, stdout.String(), stderr.String()
}

func TestTicksAreShownInTheZonesOfTheScheduleAndTheUser(t *testing.T) {
	store, _ := scheduleStore(t)
	for args, want := range map[string]string{
		"schedule next orders nightly -n 1": `
ID  AT                        LOCAL                        HERE                         BLOCKED
a   2026-01-03T05:00:00.000Z  Sat 2026-01-03 06:00:00 CET  Sat 2026-01-03 00:00:00 EST  -
`,
		"schedule next orders nightly -n 1 -o jsonl": `
{"name":"nightly","id":"a","at":"2026-01-03T05:00:00Z","local":"2026-01-03T06:00:00+01:00","here":"2026-01-03T00:00:00-05:00","blocked":""}
`,
		"schedule ls orders": `
NAME     COUNT  FIRST ID  FIRST WHEN         FIRST ZONE     FIRST LATE
nightly      1  a         each day at 06:00  Europe/Berlin          0s
`,
		"schedule ls orders --id a": `
NAME     ID  WHEN               ZONE           NEXT                      LATE  PAUSED  NOTE
nightly  a   each day at 06:00  Europe/Berlin  2026-01-03T05:00:00.000Z    0s  false   -
`,
	} {
		code, out, said := runIn(t, "America/New_York", store, strings.Fields(args)...)
		if code != 0 || out != want[1:] {
			t.Errorf("%s: exit code %d: %s\n%s\nwant:\n%s", args, code, said, out, want)
		}
	}
}

func TestALateTickIsShown(t *testing.T) {
	store, advance := scheduleStore(t)
	advance(18 * time.Hour) // an hour after the tick
	if _, out, _ := runIn(t, "UTC", store, "schedule", "ls", "orders"); !strings.Contains(out, "1h0m0s") {
		t.Errorf("ls: %s", out)
	}

	for _, args := range []string{
		"schedule ls orders --id a", "schedule show orders nightly", "schedule ls orders -o wide",
	} {
		if _, out, _ := runIn(t, "UTC", store, strings.Fields(args)...); !strings.Contains(out, "has been due for 1 h") {
			t.Errorf("%s: %s", args, out)
		}
	}

	_, out, _ := runIn(t, "UTC", store, "job", "why", "orders", "a")
	for _, want := range []string{
		"the tick of its schedule nightly is late, due for 1 h; no server serves the queue.",
		"✗ schedule  nightly, each day at 06:00 in Europe/Berlin: late by 1 h",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("why lacks %q:\n%s", want, out)
		}
	}

	_, out, _ = runIn(t, "UTC", store, "schedule", "next", "orders", "nightly", "-n", "2", "-o", "csv")
	if lines := strings.Split(out, "\n"); !strings.Contains(lines[1], ",2026-01-03T05:00:00Z,") ||
		!strings.Contains(lines[2], ",2026-01-04T05:00:00Z,") {
		t.Errorf("next: %s", out)
	}
}

// A late schedule is named and found although it is not the first of its name.
func TestALateScheduleOfALaterIDIsFound(t *testing.T) {
	store, advance := scheduleStore(t)
	q := skein.NewQueue("orders", skein.QueueOptions[[]byte]{Codec: raw{}, Shards: 1})
	client := skein.NewClient(store, skein.ClientOptions{})
	for id, spec := range map[string]string{"0": "0 9 * * *", "b": "0 6 * * *", "c": "0 6 * * *"} {
		must(t, q.Schedule(t.Context(), client, "nightly", skein.Cron(spec, "Europe/Berlin"), id, []byte("p")))
	}
	for _, line := range []string{"schedule pause orders nightly --id b", "schedule pause orders nightly --id c"} {
		if code, _, said := runIn(t, "UTC", store, strings.Fields(line)...); code != 0 {
			t.Fatalf("%s: exit code %d: %s", line, code, said)
		}
	}
	advance(17*time.Hour + 70*time.Second)

	_, out, _ := runIn(t, "UTC", store, "wrong")
	want := "is 1 min 10 s late: no server runs this queue; the schedule nightly of the id a is late"
	if !strings.Contains(out, want) {
		t.Errorf("wrong lacks %q:\n%s", want, out)
	}
	_, out, said := runIn(t, "UTC", store, "schedule", "ls", "orders")
	if !strings.Contains(out, "nightly      4  0 ") ||
		!strings.Contains(said, "its other ids may be late: skein schedule ls orders --state late") {
		t.Errorf("ls: %s%s", out, said)
	}

	for args, want := range map[string]struct{ ids, said string }{
		"--state late":                            {"nightly,a", ""},
		"--state late --name nightly":             {"nightly,a", ""},
		"--state paused --name nightly":           {"nightly,b nightly,c", ""},
		"--state paused --limit 1":                {"nightly,b", "more than 1 schedules in the state paused; --limit 0"},
		"--state paused --limit 2":                {"nightly,b nightly,c", ""},
		"--state missed --id a":                   {"", ""},
		"--state broken --name nightly --limit 0": {"", ""},
	} {
		code, out, said := runIn(t, "UTC", store, strings.Fields("schedule ls orders -o csv "+args)...)
		var ids []string
		for _, line := range strings.Fields(out)[1:] {
			if fields := strings.Split(line, ","); len(fields) > 2 && fields[0] == "nightly" {
				ids = append(ids, fields[0]+","+fields[1])
			}
		}
		if code != 0 || strings.Join(ids, " ") != want.ids || !strings.Contains(said, want.said) ||
			want.said == "" && said != "" {
			t.Errorf("%s: exit code %d, %v, want %v: %s", args, code, ids, want, said)
		}
	}

	// Nothing of a paused queue is late.
	must(t, inspect.New(store, inspect.Options{}).Pause(t.Context(), "orders"))
	_, out, _ = runIn(t, "UTC", store, "schedule", "ls", "orders", "--state", "late")
	if strings.Contains(out, "nightly") {
		t.Errorf("late in a paused queue: %s", out)
	}
}

// The search for schedules in a state ends, and states how many it has read.
func TestTheSearchForAStateIsBounded(t *testing.T) {
	store, _ := scheduleStore(t)
	calls := 0
	endless := storekit.Intercept(store,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			err := next(ctx)
			if page, is := call.Reply.(*ports.SchedulesPage); is && calls < 150 {
				calls++
				one := page.Schedules[0]
				for len(page.Schedules) < ports.MaxSchedulesPage {
					page.Schedules = append(page.Schedules, one)
				}
				page.Next = core.ScheduleKey{ID: "0", Name: "nightly"}
			}
			return err
		})

	args := []string{"schedule", "ls", "orders", "--state", "late", "-o", "jsonl"}
	code, out, said := runIn(t, "UTC", endless, args...)
	if want := "only the first 10,000 schedules were read; --limit 0 reads all\n"; code != 0 || out != "" || said != want {
		t.Errorf("exit code %d, %q, %q, want %q", code, out, said, want)
	}
	if calls > 101 {
		t.Errorf("%d calls", calls)
	}
	code, _, said = runIn(t, "UTC", endless, append(args, "--limit", "0")...)
	if code != 0 || said != "" || calls != 150 {
		t.Errorf("without a limit: exit code %d, %q, %d calls", code, said, calls)
	}
}

// A schedule that a server can't read is marked where its next ticks are shown, also beside a dead
// letter of its id.
func TestABrokenScheduleIsMarked(t *testing.T) {
	store, advance := scheduleStore(t)
	advance(18 * time.Hour)
	breakSchedule(t, store, "a")
	letter := core.DeadLetter{ID: "a", Failures: core.Failures{{Text: "boom"}}, Group: "boom", Payloads: []core.Payload{{Data: []byte("p")}}}
	_, err := store.Import(t.Context(), ports.ImportRequest{
		Shard: core.Shard{Queue: "orders"}, Shards: 1, Generation: 1, DeadLetters: []core.DeadLetter{letter},
	})
	must(t, err)

	for args, want := range map[string]string{
		"schedule next orders nightly -n 1": "  a server can't read its spec: no zone data\n",
		"schedule show orders nightly":      "no zone data\n",
		"job why orders a":                  "✗ schedule  nightly, each day at 06:00 in Europe/Berlin: a server can't read its spec: no zone data\n",
	} {
		if code, out, said := runIn(t, "UTC", store, strings.Fields(args)...); code != 0 ||
			!strings.Contains(out, want) {
			t.Errorf("%s: exit code %d, %s%s\nwant %q", args, code, said, out, want)
		}
	}
}

// A broken schedule is found although it is not the first of its name.
func TestABrokenScheduleOfALaterIDIsWrong(t *testing.T) {
	store, _ := scheduleStore(t)
	q := skein.NewQueue("orders", skein.QueueOptions[[]byte]{Codec: raw{}, Shards: 1})
	must(t, q.Schedule(t.Context(), skein.NewClient(store, skein.ClientOptions{}),
		"nightly", skein.Cron("0 6 * * *", "UTC"), "b", []byte("p")))
	breakSchedule(t, store, "b")
	code, out, said := runIn(t, "UTC", store, "wrong")
	if want := "Servers can't read the spec of the schedule nightly"; code != 6 || !strings.Contains(out, want) {
		t.Errorf("exit code %d, %s%s; want %q", code, out, said, want)
	}
}

// breakSchedule marks the schedule of an id as one that a server can't read.
func breakSchedule(t *testing.T, store *memory.Store, id string) {
	t.Helper()
	page, err := store.Schedules(t.Context(), ports.SchedulesRequest{Queue: "orders", ID: id})
	must(t, err)
	broken := page.Schedules[0].Break("no zone data", page.Now)
	_, err = store.ChangeSchedules(t.Context(), ports.ChangeSchedulesRequest{
		Shard: core.Shard{Queue: "orders"}, Shards: 1, Generation: 1,
		Changes: []ports.ScheduleChange{
			{ScheduleKey: broken.ScheduleKey, Revision: page.Schedules[0].Revision, Schedule: &broken},
		},
	})
	must(t, err)
}

// If a part of the store can't be reached, the schedules of the rest are shown, and the command
// ends with 1.
func TestSchedulesThatAreReachedAreShown(t *testing.T) {
	store, _ := scheduleStore(t)
	away := []core.Shard{{Queue: "orders", Index: 1}}
	part := storekit.Intercept(store,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			err := next(ctx)
			switch reply := call.Reply.(type) {
			case *ports.SchedulesPage:
				reply.Unreached = away
			case *ports.ScheduleNamesPage:
				reply.Unreached = away
			}
			return err
		})

	for _, args := range []string{"schedule ls orders", "schedule ls orders --id a", "schedule next orders nightly"} {
		code, out, said := runIn(t, "UTC", part, strings.Fields(args)...)
		if code != exitFailed || !strings.Contains(out, "a ") || !strings.Contains(said, "orders/1 can't be reached") {
			t.Errorf("%s: exit code %d: %s%s", args, code, out, said)
		}
	}
}
