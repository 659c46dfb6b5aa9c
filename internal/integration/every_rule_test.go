package integration_test

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// By Every each push of equal bytes is handled once with its very score, whatever the score, also
// after a failure, a burial and a revive. A push that is repeated with its score adds nothing.
func TestEveryPushOfEqualBytesIsHandled(t *testing.T) {
	scores := []float64{
		0, 1, -1, 0.1, 1.0 / 3, 1e-9, -1e-300, math.SmallestNonzeroFloat64, 1e9 + 0.1, 1764230400.123456,
		1764230400.1234564,
		1 << 53, -1 << 53, 1e300, -math.MaxFloat64, math.MaxFloat64, math.Nextafter(1, 2),
	}
	for i := range 100 { // more than a store keeps in one record
		scores = append(scores, float64(10+i)+0.000001)
	}
	slices.Sort(scores)
	onEachStore(t, func(t *testing.T, store ports.ShardStore) {
		queue := skein.NewQueue("counter", skein.QueueOptions[int]{
			Shards: 1, Merge: skein.Every(), Backoff: func(int) time.Duration { return 0 },
		})
		client := skein.NewClient(store, skein.ClientOptions{})
		var met, again skein.Met
		for _, counts := range []*skein.Met{&met, &again} {
			var entries []skein.Entry[int]
			for _, score := range scores {
				entries = append(entries,
					skein.Entry[int]{ID: "a", Payload: 5, Options: []skein.PushOption{skein.Score(score)}})
			}
			must(t, queue.PushMany(t.Context(), client, entries, skein.Tell(counts)))
		}
		if want := (skein.Met{New: 1, Merged: len(scores) - 1}); met != want {
			t.Errorf("the pushes met %+v, want %+v", met, want)
		}
		if want := (skein.Met{Duplicate: len(scores)}); again != want {
			t.Errorf("the repeated pushes met %+v, want %+v", again, want)
		}

		var got []float64
		calls := 0
		handler := queue.JobHandler(func(_ context.Context, job *skein.Job[int]) error {
			got = nil
			for i := range job.Payloads {
				if p := &job.Payloads[i]; p.Value == 5 {
					got = append(got, p.Score)
				}
			}
			switch calls++; calls {
			case 1:
				return errors.New("not yet")
			case 2:
				return skein.Bury(errors.New("no use"))
			}
			return nil
		})
		run := func(wantCalls int) {
			t.Helper()
			if _, err := skein.NewServer(store, skein.ServerOptions{
				Logger: slog.New(slog.DiscardHandler),
			}, handler).RunDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if calls != wantCalls {
				t.Errorf("%d calls, want %d", calls, wantCalls)
			}
			if diff := cmp.Diff(scores, got); diff != "" {
				t.Errorf("handled in call %d (-want +got):\n%s", calls, diff)
			}
		}
		run(2)
		inspector := inspect.New(store, inspect.Options{Logger: slog.New(slog.DiscardHandler)})
		got = nil
		for p, err := range inspector.Payloads(t.Context(), "counter", "a", inspect.PayloadOptions{
			Place: inspect.PlaceDead,
		}) {
			if must(t, err); string(p.Data) == "5" {
				got = append(got, p.Score)
			}
		}
		if diff := cmp.Diff(scores, got); diff != "" {
			t.Errorf("in the morgue (-want +got):\n%s", diff)
		}
		r, err := inspector.Revive(t.Context(), "counter",
			inspect.DeadPayloads(inspect.DeadLetterPayloads{ID: "a", Payloads: [][]byte{[]byte("5")}}))
		if err != nil || r.Handled != 1 {
			t.Errorf("RevivePayloads: %+v, %v", r, err)
		}
		run(3)
	})
}

func TestEveryPushInATransactionCounts(t *testing.T) {
	t.Parallel()
	pool := testservers.Postgres(t)
	store := kit.NewPostgres(t, pool)
	client := skein.NewClient(store, skein.ClientOptions{})
	queue := skein.NewQueue("counter", skein.QueueOptions[int]{Shards: 1, Merge: skein.Every().Last(3)})
	must(t, queue.Push(t.Context(), client, "a", 5, skein.Score(1)))
	must(t, pgx.BeginFunc(t.Context(), pool, func(tx pgx.Tx) error {
		for _, score := range []float64{2, 3, 3, 4} {
			must(t, queue.Push(t.Context(), client.Via(store.Tx(tx)), "a", 5, skein.Score(score)))
		}
		return nil
	}))
	var got []float64
	for p, err := range inspect.New(store, inspect.Options{}).Payloads(
		t.Context(), "counter", "a", inspect.PayloadOptions{},
	) {
		if must(t, err); string(p.Data) == "5" {
			got = append(got, p.Score)
		}
	}
	if want := []float64{2, 3, 4}; !slices.Equal(got, want) {
		t.Errorf("the job has payloads of scores %v, want %v", got, want)
	}
}
