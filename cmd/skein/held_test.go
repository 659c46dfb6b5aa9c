package main

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// hold pushes a job to a new queue, and has it held after its first failure.
func hold(t *testing.T, store *memory.Store, queue, id string) {
	t.Helper()
	shard := core.Shard{Queue: queue}
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: 1})
	must(t, err)
	_, err = store.Push(t.Context(), ports.PushRequest{
		Queue:      queue,
		Shards:     1,
		Generation: 1,
		Entries:    []core.Entry{{ID: id, Payload: core.Payload{Data: []byte("p")}}},
	})
	must(t, err)

	lease, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Owner:      "w",
		Attempt:    1,
		TTL:        time.Minute,
	})
	must(t, err)

	turn := ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: "w", Token: lease.Token},
		Number: 1,
		TTL:    time.Minute,
		Want:   1,
	}
	reply, err := store.Turn(t.Context(), turn)
	must(t, err)

	policy := core.RetryPolicy{Exhausted: core.Hold}
	turn.Number, turn.Want = 2, 0
	turn.Settlements = []core.Settlement{
		policy.Settlement(&reply.Claims[0], &core.Outcome{Kind: core.Failed, Error: "boom"}, 0),
	}
	_, err = store.Turn(t.Context(), turn)
	must(t, err)
}

// An action on all that match takes no step once --timeout is over.
func TestAnActionTakesNoStepAfterItsTimeout(t *testing.T) {
	store := memory.New(memory.Options{})
	hold(t, store, "orders", "42")
	if code, stdout, stderr := runOn(t, store, "job", "release", "orders",
		"--all", "--yes", "--timeout", "1ns"); code != 7 || !strings.Contains(stderr, "before its first step") {
		t.Errorf("it ends with %d, want 7: %s%s", code, stdout, stderr)
	}

	if _, stdout, stderr := runOn(t, store, "job", "ls", "orders", "--held"); !strings.Contains(stdout, "42") {
		t.Errorf("the job is no longer held: %s%s", stdout, stderr)
	}
}

// If a signal or --timeout comes while an action makes its preparations, the action takes no step.
// If it continues another call, it prints the text to continue from.
func TestAnActionTakesNoStepIfItEndsBeforeTheFirst(t *testing.T) {
	store := memory.New(memory.Options{})
	hold(t, store, "orders", "42")
	hold(t, store, "mails", "43")
	if code, stdout, stderr := runOn(t, store, "job", "bury", "mails", "43"); code != 0 {
		t.Fatalf("it ends with %d: %s%s", code, stdout, stderr)
	}

	// stopped runs a command that ends during its first call of a method.
	stopped := func(method, command string) (code int, said string) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		slow := storekit.Intercept(store,
			func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
				if call.Method == method {
					stop()
				}
				return next(ctx)
			})
		code, stdout, stderr := runUntil(ctx, slow, strings.Fields(command)...)
		return code, stdout + stderr
	}

	for _, method := range []string{"Audit", "Stats"} {
		for _, command := range []string{
			"job release orders --all --yes",
			"queue purge orders --yes",
			"morgue rm mails --all --yes",
		} {
			if code, said := stopped(method, command); code != 7 ||
				!strings.Contains(said, "before its first step") || strings.Contains(said, "--continue") {
				t.Errorf("%s, stopped in %s, ends with %d, want 7: %s", command, method, code, said)
			}
		}
	}

	full := storekit.Intercept(store,
		func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if call.Method == "Expedite" {
				return ports.ErrFull
			}
			return next(ctx)
		})

	_, _, said := runOn(t, full, "job", "release", "orders", "--all", "--yes")
	text := goOn.FindString(said)
	if code, said := stopped("Stats", "job release orders --all "+text); code != 4 ||
		!strings.Contains(said, "stopped after 0 of 1; to continue") {
		t.Errorf("with %s it ends with %d, want 4: %s", text, code, said)
	}

	for command, want := range map[string]string{"job ls orders --held": "42", "morgue ls mails": "43"} {
		if _, stdout, stderr := runOn(t, store, strings.Fields(command)...); !strings.Contains(stdout, want) {
			t.Errorf("%s lacks %s: %s%s", command, want, stdout, stderr)
		}
	}
}

// A held job has a time that never comes. People don't see it as a date; programs do, as in the
// API.
func TestAHeldJobNeverRuns(t *testing.T) {
	store := memory.New(memory.Options{})
	hold(t, store, "orders", "42")
	for _, tt := range []struct {
		command string
		want    string
		date    bool
	}{
		{"job why orders 42", "✗ due       never, until it is released\n", false},
		{"job ls orders --held", "42  never, until it is released  ", false},
		{"job ls orders", "42  never, until it is released  ", false},
		{"job get orders 42", "never, until it is released", false},
		{"job ls orders --held -o jsonl", `"perform_at":"2255-`, true},
	} {
		code, stdout, stderr := runOn(t, store, strings.Fields(tt.command)...)
		if code != 0 || !strings.Contains(stdout, tt.want) || strings.Contains(stdout, "2255") != tt.date {
			t.Errorf("%s ends with %d, want %q in: %s%s", tt.command, code, tt.want, stdout, stderr)
		}
	}
}

// A burial by hand replaces the error of the id's dead letter, by rule. The command prints the
// error that is lost, unless it stays the same.
func TestABurialPrintsTheErrorThatItReplaces(t *testing.T) {
	store := memory.New(memory.Options{})
	shard := core.Shard{Queue: "orders"}
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1})
	must(t, err)
	push := func(data string) {
		_, err := store.Push(t.Context(), ports.PushRequest{
			Queue:      "orders",
			Shards:     1,
			Generation: 1,
			Entries:    []core.Entry{{ID: "42", Payload: core.Payload{Data: []byte(data)}}},
		})
		must(t, err)
	}
	push("first")

	lease, err := store.Acquire(t.Context(), ports.AcquireRequest{
		Shard:      shard,
		Shards:     1,
		Generation: 1,
		Owner:      "w",
		Attempt:    1,
		TTL:        time.Minute,
	})
	must(t, err)
	turn := ports.TurnRequest{
		Lease:  ports.Lease{Shard: shard, Owner: "w", Token: lease.Token},
		Number: 1,
		TTL:    time.Minute,
		Want:   1,
	}
	reply, err := store.Turn(t.Context(), turn)
	must(t, err)
	turn.Number, turn.Want = 2, 0
	turn.Settlements = []core.Settlement{core.RetryPolicy{}.Recover(&reply.Claims[0], 0)}
	_, err = store.Turn(t.Context(), turn)
	must(t, err)

	const says = "the burial replaces the earlier error of the dead letter 42: its server was lost "
	push("second")
	if code, _, stderr := runOn(t, store, "job", "bury", "orders", "42"); code != 0 || !strings.Contains(stderr, says) {
		t.Errorf("it ends with %d: %q, want %q", code, stderr, says)
	}
	push("third")
	if code, _, stderr := runOn(t, store, "job", "bury-first", "orders", "42", "third"); code != 0 ||
		strings.Contains(stderr, "replaces") {
		t.Errorf("a burial with the same error ends with %d: %q", code, stderr)
	}
}
