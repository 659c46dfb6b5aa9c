package skein_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
)

// held is a queue that holds after two executions, its store, and what its handler has booked.
type held struct {
	t      *testing.T
	store  *memory.Store
	queue  *skein.Queue[int]
	booked []int
	calls  int
	// broken has the payloads that can't be booked.
	broken map[int]bool
}

func newHeld(t *testing.T, options skein.QueueOptions[int]) *held {
	options.MaxRetries, options.Exhausted = 1, skein.Hold
	options.Backoff = func(int) time.Duration { return time.Hour }
	return &held{
		t:      t,
		store:  memory.New(memory.Options{}),
		queue:  skein.NewQueue("ledger", options),
		broken: map[int]bool{},
	}
}

func (h *held) push(payloads ...int) {
	h.t.Helper()
	for _, p := range payloads {
		push(h.t, h.store, h.queue, "account", p)
	}
}

// run runs what is due in the next hours.
func (h *held) run() {
	h.t.Helper()
	for range 5 {
		time.Sleep(time.Hour)
		runDue(h.t, h.store, skein.ServerOptions{}, h.queue.Each(func(_ context.Context, _ string, payload int) error {
			h.calls++
			if h.broken[payload] {
				return fmt.Errorf("payload %d can't be booked", payload)
			}
			h.booked = append(h.booked, payload)
			return nil
		}))
	}
}

func (h *held) inspector() *inspect.Inspector {
	return inspect.New(h.store, inspect.Options{Logger: quiet})
}

// With Hold a payload that can't be handled holds its id: nothing behind it runs, whatever is
// pushed, until an operator releases the job once the cause is gone.
func TestHoldSkipsNoPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t, skein.QueueOptions[int]{PushRule: skein.Earliest()})
		h.broken[2] = true
		h.push(1, 2, 3)
		h.run()
		h.push(4)
		h.run()
		equal(t, "booked", h.booked, []int{1})
		equal(t, "calls", h.calls, 3)

		found, err := h.inspector().Find(t.Context(), "ledger", "account")
		if err != nil || found.DeadLetter != nil || !found.Queued.Held ||
			found.Queued.LastError != "payload 2 can't be booked" || found.Queued.PayloadCount != 3 {
			t.Fatalf("found %+v, %v; want a held job of three payloads", found, err)
		}

		release := func() {
			t.Helper()
			if r, err := h.inspector().Release(t.Context(), "ledger", inspect.JobIDs("account")); err != nil ||
				r.Handled != 1 {
				t.Fatalf("Release: %+v, %v", r, err)
			}
		}

		release() // too early
		h.run()
		equal(t, "calls once it was released too early", h.calls, 5)
		equal(t, "held again", counts(t, h.store, "ledger").Held, 1)

		h.broken[2] = false
		release()
		h.run()

		equal(t, "booked in the end", h.booked, []int{1, 2, 3, 4})
		got := counts(t, h.store, "ledger")
		equal(t, "queued, held and dead", []int64{got.Fresh + got.Retrying, got.Held, got.Dead}, []int64{0, 0, 0})
	})
}

func TestAHeldJobContinuesWithoutItsFirstPayload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t, skein.QueueOptions[int]{})
		h.broken[2], h.broken[4] = true, true
		h.push(1, 2, 3, 4, 5)
		h.run()
		first := []inspect.FirstPayload{{ID: "account", Data: []byte("3")}}
		if r, err := h.inspector().Bury(t.Context(), "ledger", inspect.FirstPayloads(first...)); err != nil ||
			r.Handled != 0 {
			t.Errorf("BuryFirst of a later payload: %+v, %v; want nothing", r, err)
		}

		first[0].Data = []byte("2")
		if r, err := h.inspector().Bury(t.Context(), "ledger", inspect.FirstPayloads(first...)); err != nil ||
			r.Handled != 1 {
			t.Errorf("BuryFirst: %+v, %v", r, err)
		}
		h.run()

		equal(t, "booked", h.booked, []int{1, 3})
		equal(t, "calls, two for each broken payload", h.calls, 2+2*2)

		first[0].Data = []byte("4")
		if r, err := h.inspector().Delete(t.Context(), "ledger", inspect.FirstPayloads(first...)); err != nil ||
			r.Handled != 1 {
			t.Errorf("DeleteFirst: %+v, %v", r, err)
		}
		h.run()

		equal(t, "booked in the end", h.booked, []int{1, 3, 5})
		equal(t, "state", stateOf(t, h.store, "ledger", "account"), `dead [2], error "payload 2 can't be booked"`)
	})
}

// A ledger of many accounts whose bookings fail by chance, with an operator who releases what is
// held: each account has all its bookings, once and in order. The same with BuryFirst skips some.
func TestALedgerThatHoldsIsComplete(t *testing.T) {
	const accounts, bookings = 20, 30
	run := func(t *testing.T, exhausted skein.Exhaustion) (books map[string][]int, holds int, dead int64) {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(memory.Options{})
			queue := skein.NewQueue("ledger", skein.QueueOptions[int]{
				MaxRetries: 2, Exhausted: exhausted, Backoff: func(int) time.Duration { return time.Minute },
			})

			chance := rand.New(rand.NewPCG(1, 2))
			books = map[string][]int{}
			handler := queue.Each(func(_ context.Context, id string, booking int) error {
				if chance.IntN(100) < 30 {
					return errors.New("the bank does not answer")
				}
				books[id] = append(books[id], booking)
				return nil
			})

			inspector := inspect.New(store, inspect.Options{Logger: quiet})
			for booking := 0; booking < bookings ||
				counts(t, store, "ledger").Fresh+counts(t, store, "ledger").Retrying > 0; booking++ {
				for a := 0; a < accounts && booking < bookings; a++ {
					push(t, store, queue, fmt.Sprint(a), booking)
				}

				time.Sleep(time.Minute)
				runDue(t, store, skein.ServerOptions{}, handler)
				released, err := inspector.Release(t.Context(), "ledger", inspect.AllJobs(nil, inspect.BulkOptions{}))
				if err != nil {
					t.Fatal(err)
				}
				holds += released.Handled
			}
			dead = counts(t, store, "ledger").Dead
		})
		return books, holds, dead
	}

	complete := func(books map[string][]int) (n int) {
		for _, booked := range books {
			whole := len(booked) == bookings
			for i, booking := range booked {
				if i > 0 && booking <= booked[i-1] {
					t.Errorf("booked %v, out of order", booked)
				}
				whole = whole && booking == i
			}
			if whole {
				n++
			}
		}
		return n
	}

	books, holds, dead := run(t, skein.Hold)
	if n := complete(books); n != accounts || holds == 0 || dead != 0 {
		t.Errorf("Hold: %d of %d accounts are complete, %d holds, %d dead; want all, some, none",
			n, accounts, holds, dead)
	}

	books, holds, dead = run(t, skein.BuryFirst)
	if n := complete(books); n == accounts || holds != 0 || dead == 0 {
		t.Errorf("BuryFirst: %d of %d accounts are complete, %d holds, %d dead; want some, none, some",
			n, accounts, holds, dead)
	}
}

// A job that kills its processes is held with the reason, and runs anew once it is released.
func TestHoldKeepsAJobThatWasRecoveredTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(t, skein.QueueOptions[int]{MaxRecoveries: skein.NoRetries, Shards: 1})
		h.push(1, 2)
		abandon(t, h.store, "ledger")
		h.run()
		equal(t, "booked", h.booked, nil)
		equal(t, "state", stateOf(t, h.store, "ledger", "account"),
			fmt.Sprintf("queued [1 2], retry 0, in %v, error %q",
				core.MaxInstant.Sub(core.InstantOf(time.Now())),
				"its server was lost 1 times while it ran: the job may be crashing its process"))
		if _, err := h.inspector().Release(t.Context(), "ledger", inspect.JobIDs("account")); err != nil {
			t.Fatal(err)
		}
		h.run()
		equal(t, "booked in the end", h.booked, []int{1, 2})
	})
}

func TestAnUnknownExhaustionIsRefused(t *testing.T) {
	q := skein.NewQueue("q", skein.QueueOptions[int]{Exhausted: 2})
	err := q.Push(t.Context(), skein.NewClient(memory.New(memory.Options{}), skein.ClientOptions{}), "a", 1)
	if !errors.Is(err, skein.ErrInvalidQueue) {
		t.Errorf("%v; want ErrInvalidQueue", err)
	}
}
