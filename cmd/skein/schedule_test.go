package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
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

	_, out, _ := runIn(t, "UTC", store, "job", "why", "orders", "a")
	for _, want := range []string{
		"the tick of its schedule nightly is late, due for 1h0m0s; no server serves the queue.",
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

// A schedule that a server can't read is marked where its next ticks are shown, also beside a dead
// letter of its id.
func TestABrokenScheduleIsMarked(t *testing.T) {
	store, advance := scheduleStore(t)
	advance(18 * time.Hour)
	breakSchedule(t, store, "a")
	letter := core.DeadLetter{ID: "a", Error: "boom", Group: "boom", Payloads: []core.Payload{{Data: []byte("p")}}}
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
	if want := "servers can't read the spec of the schedule nightly"; code != 6 || !strings.Contains(out, want) {
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
