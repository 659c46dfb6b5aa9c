package skein_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// pastOf returns the record of an id, or nil.
func pastOf(t *testing.T, store ports.ShardStore, queue, id string) *core.Past {
	t.Helper()
	found, err := store.Find(t.Context(), ports.FindRequest{Queue: queue, ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return found.Past
}

func check(t interface {
	Helper()
	Fatal(args ...any)
}, err error,
) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

type receipt struct{ Number int }

func TestDoneJobsAreRecordedWithTheirResults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		fails := true
		orders := skein.NewQueue("orders", skein.QueueOptions[string]{
			Keep:      skein.Keep{Age: time.Hour},
			BatchSize: 2,
			Backoff:   func(int) time.Duration { return time.Minute },
		})
		handler := orders.JobHandler(func(ctx context.Context, job *skein.Job[string]) error {
			time.Sleep(3 * time.Second)
			if err := errors.Join(skein.SetResult(ctx, receipt{1}), job.SetResult(receipt{2})); err != nil {
				return err
			}
			if job.ID == "bad" && fails {
				fails = false
				return errors.New("boom")
			}
			return nil
		})
		server := skein.NewServer(store, skein.ServerOptions{Name: "blue", ErrorCodec: skein.ErrorCodec{}}, handler)
		run := func() {
			t.Helper()
			if _, err := server.RunDue(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range []string{"42", "bad"} {
			for score := range 2 {
				check(t, orders.Push(t.Context(), client, id, strings.Repeat("x", score+1), skein.Score(float64(score))))
			}
		}

		began := time.Now()
		run()
		past := pastOf(t, store, "orders", "42")
		if past == nil || past.Node != "blue" || past.Took != 3*time.Second || past.Score != 1 || past.Payloads != 2 ||
			past.Attempt != 1 || string(past.Result) != `{"Number":2}` || past.Started.Time().Before(began) ||
			past.DoneAt.Sub(past.Started) < 3*time.Second {
			t.Errorf("the record is %+v", past)
		}
		if past := pastOf(t, store, "orders", "bad"); past != nil {
			t.Errorf("a failed job has the record %+v", past)
		}

		time.Sleep(2 * time.Minute)
		server = skein.NewServer(store, skein.ServerOptions{Name: "green"}, handler)
		run()
		if past := pastOf(t, store, "orders", "bad"); past == nil || past.Attempt != 2 || past.Node != "green" {
			t.Errorf("the record of the retry is %+v", past)
		}
	})
}

func TestResultsThatCanNotBeKeptAreRefused(t *testing.T) {
	store := memory.New(memory.Options{})
	client := skein.NewClient(store, skein.ClientOptions{})
	keeps := skein.NewQueue("keeps", skein.QueueOptions[string]{Keep: skein.Keep{Age: time.Hour}})
	plain := skein.NewQueue("plain", skein.QueueOptions[string]{})
	check(t, keeps.Push(t.Context(), client, "1", "x"))
	check(t, plain.Push(t.Context(), client, "1", "x"))

	var late context.Context
	_, err := skein.NewServer(store, skein.ServerOptions{},
		keeps.Each(func(ctx context.Context, _, _ string) error {
			late = ctx
			if err := skein.SetResult(ctx, func() {}); !errors.Is(err, skein.ErrInvalidPayload) {
				t.Errorf("a function is refused with %v", err)
			}
			if err := skein.SetResult(ctx, strings.Repeat("x", core.MaxResultBytes)); !errors.Is(err, skein.ErrInvalidPayload) {
				t.Errorf("a large result is refused with %v", err)
			}
			return skein.SetResult(ctx, strings.Repeat("x", core.MaxResultBytes-2))
		}),
		plain.Each(func(ctx context.Context, _, _ string) error {
			if err := skein.SetResult(ctx, 1); !errors.Is(err, skein.ErrInvalidOptions) {
				t.Errorf("without a Keep a result is refused with %v", err)
			}
			return nil
		}),
	).RunDue(t.Context())
	check(t, err)
	if past := pastOf(t, store, "keeps", "1"); past == nil || len(past.Result) != core.MaxResultBytes {
		t.Errorf("the record is %+v", past)
	}
	if past := pastOf(t, store, "plain", "1"); past != nil {
		t.Errorf("without a Keep there is the record %+v", past)
	}
	if skein.SetResult(late, 1) == nil || skein.SetResult(t.Context(), 1) == nil {
		t.Error("a result is taken after its job, or without one")
	}

	bad := skein.NewQueue("bad", skein.QueueOptions[string]{Keep: skein.Keep{Count: 10}})
	if err := bad.Push(t.Context(), client, "1", "x"); !errors.Is(err, skein.ErrInvalidQueue) {
		t.Errorf("a Keep without an age is refused with %v", err)
	}
}
