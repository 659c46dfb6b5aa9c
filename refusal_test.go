package skein_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
)

// A handler that settles in a transaction settles the payloads that it saw: the one that the codec
// refuses, and those behind it, stay.
func TestSettleKeepsWhatTheHandlerDidNotSee(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		q := skein.NewQueue("q", skein.QueueOptions[string]{
			Codec:       bracketed{},
			Undecodable: skein.RetryUndecodable,
			Backoff:     func(int) time.Duration { return time.Hour },
		})
		for i, p := range []string{"1", "bad", "3"} {
			push(t, store, q, "a", p, skein.Score(float64(i)))
		}
		runDue(t, store, skein.ServerOptions{}, q.Handler(func(ctx context.Context, _ string, _ []string) error {
			return skein.SettleIn(ctx, store)
		}))
		equal(t, "state",
			stateOf(t, store, "q", "a"), `queued [<bad> <3>], retry 0, in 1h0m0s, error "decode payload: it is bad"`)
	})
}

func TestWhatTheCodecRefusesBehindADonePayloadIsBuriedAsSuch(t *testing.T) {
	store := memory.New(memory.Options{})
	q := skein.NewQueue("q", skein.QueueOptions[string]{
		Codec: bracketed{}, Undecodable: skein.RetryUndecodable, MaxRetries: skein.NoRetries,
	})
	push(t, store, q, "a", "1", skein.Score(1))
	push(t, store, q, "a", "bad", skein.Score(2))
	got := reportedBurials(t, store, nop(q))
	if want := "q a codec [<bad>]: decode payload: it is bad"; len(got) != 1 || got[0] != want {
		t.Errorf("reported %q, want %q", got, want)
	}
}
