package main

import (
	"encoding/json"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

// pausedShop is a store with a queue that ann has paused for a reason, and that a job waits in.
func pausedShop(t *testing.T) *skeintest.FailingStore {
	t.Helper()
	store := skeintest.NewFailingStore(memory.New(memory.Options{}))
	q := skein.NewQueue[int]("orders", skein.QueueOptions[int]{})
	must(t, q.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "1", 1))
	ann := inspect.WithActor(t.Context(), inspect.Actor{Name: "ann", Reason: "the bank is closed"})
	must(t, inspect.New(store, inspect.Options{}).Pause(ann, "orders"))
	return store
}

// ratedShop is a store with a queue whose rate is stopped for a day.
func ratedShop(t *testing.T) *skeintest.FailingStore {
	t.Helper()
	store := skeintest.NewFailingStore(memory.New(memory.Options{}))
	q := skein.NewQueue[int]("orders", skein.QueueOptions[int]{})
	must(t, q.Push(t.Context(), skein.NewClient(store, skein.ClientOptions{}), "1", 1))
	_, err := store.Announce(t.Context(), ports.AnnounceRequest{TTL: 24 * time.Hour, Node: ports.Node{
		Owner:  "o",
		Name:   "blue",
		Queues: []string{"orders"},
		Status: ports.NodeStatus{Queues: []ports.QueueStatus{{Queue: "orders", Rate: "10/1s"}}},
	}})
	must(t, err)
	must(t, inspect.New(store, inspect.Options{}).StopRate(t.Context(), "orders", "", 24*time.Hour))
	return store
}

// A pause has the time at which it began, and who made it and why, also if top starts later.
func TestTopNamesWhoPausedAQueueAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, began := pausedShop(t), time.Now()
		time.Sleep(time.Hour)

		seen := newTop(store)
		text, err := looked(t, seen)
		if want := began.UTC().Format("2006-01-02T15:04:05.000Z") +
			"  Paused by ann: “the bank is closed”; 1 job waits"; err != nil || !strings.Contains(text, want) {
			t.Errorf("%v: %q is missing:\n%s", err, want, text)
		}

		page := (&topModel{frame: topFrame{*seen, time.Now()}, width: 120, height: 24}).page()
		if fault := page[2]; !strings.Contains(fault, " 1 h ") || !strings.Contains(fault, "Paused by ann") {
			t.Errorf("the page has %q", fault)
		}
	})
}

// The beginning of a fault that is older than top is unknown, unless the store has it. A fault that
// comes later began between two looks.
func TestTopClaimsNoBeginningThatItDoesNotKnow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := skeintest.NewFailingStore(memory.New(memory.Options{}))
		declaredIn(t, store, "orders")
		store.Fail(skeintest.Fault{})

		seen := newTop(store)
		for range 2 {
			if text, _ := looked(t, seen); !strings.Contains(text, "no answer  -   -      The store does not answer") {
				t.Errorf("a fault of the first look:\n%s", text)
			}
			time.Sleep(time.Minute)
		}

		store.Heal()
		_, _ = looked(t, seen)
		began := time.Now().UTC().Format("2006-01-02T15:04:05.000Z") // the last answer
		time.Sleep(time.Minute)

		store.Fail(skeintest.Fault{})
		_, _ = looked(t, seen)
		time.Sleep(time.Minute)

		if text, _ := looked(t, seen); !strings.Contains(text, "no answer  -   "+began) {
			t.Errorf("a fault of a later look, %s:\n%s", began, text)
		}
	})
}

// skein wrong lists the faults of top once. Its exit code is another one for no fault, for a fault,
// for a store that does not answer, and for one that can be read only in part.
func TestWrongListsFaultsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sound := skeintest.NewFailingStore(memory.New(memory.Options{}))
		declaredIn(t, sound, "orders")
		half := skeintest.NewFailingStore(memory.New(memory.Options{}))
		declaredIn(t, half, "orders")
		half.Fail(skeintest.Fault{Method: "Nodes"})
		away := skeintest.NewFailingStore(memory.New(memory.Options{}))
		away.Fail(skeintest.Fault{Err: &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}})
		blamed, began := pausedShop(t), time.Now()
		rated := ratedShop(t)
		worse := pausedShop(t)
		worse.Fail(skeintest.Fault{Method: "Nodes"})
		time.Sleep(time.Hour)

		for _, tt := range []struct {
			what      string
			store     *skeintest.FailingStore
			args      string
			code      int
			out, said string
		}{
			{"nothing is wrong", sound, "wrong", 0, "WRONG  OF  SINCE  WHAT", ""},
			{"nothing is wrong, for programs", sound, "wrong -o json", 0, "[]", ""},
			{"an unknown queue", sound, "wrong nosuch", 3, "", "unknown queue"},
			{"servers that can't be listed", half, "wrong", exitFailed, "WRONG", "the servers are not known"},
			{"a store that is away", away, "wrong", exitAway, "no answer", "connection refused"},
			{"a paused queue", blamed, "wrong", 6, "Paused by ann: “the bank is closed”; 1 job waits", "skein wrong lists 1 problem;"},
			{"a queue that its rate delays", rated, "wrong", 6, "its rate is stopped for 23 h more", ""},
			{"another queue is named", blamed, "wrong nosuch", 3, "", "unknown queue"},
			{"a fault, and servers that can't be listed", worse, "wrong", 6, "Paused by ann", "the servers are not known"},
		} {
			code, out, said := runOn(t, tt.store, strings.Fields(tt.args)...)
			if code != tt.code || !strings.Contains(out, tt.out) || !strings.Contains(said, tt.said) {
				t.Errorf("%s: exit code %d, want %d, %q and %q:\n%s%s",
					tt.what, code, tt.code, tt.out, tt.said, out, said)
			}
		}

		_, out, _ := runOn(t, blamed, "wrong", "-o", "jsonl")
		var shown map[string]any
		must(t, json.Unmarshal([]byte(out), &shown))
		if shown["wrong"] != "paused" || shown["queue"] != "orders" || shown["shard"] != nil ||
			shown["since"] != began.UTC().Format(time.RFC3339Nano) {
			t.Errorf("for programs: %s", out)
		}
	})
}
