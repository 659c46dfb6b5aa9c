package main

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

func TestColumnsOfText(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "\u00e9": 1, "e\u0301": 1, "\u2705": 2, "\u231a\u26a1\u2b50": 6,
		"\u00a9\u2122": 2, "\U0001f600\U0001f680\U0001f7e2\U0001fae0": 8,
		"\u4e16\u754c": 4, "\uff21": 2, "\uff71": 1, "\u2026": 1, "\u2588\u2581": 2,
	} {
		if got := columnsOfText(text); got != want {
			t.Errorf("%q takes %d columns, want %d", text, got, want)
		}
	}
}

// observedStore has checks that fail and, if slow, a history that never comes.
type observedStore struct {
	ports.ShardStore
	unchecked error
	slow      bool
}

func (s observedStore) Check(context.Context) ([]ports.Check, error) { return nil, s.unchecked }

func (s observedStore) History(ctx context.Context, r ports.HistoryRequest) (ports.HistoryReply, error) {
	if s.slow {
		<-ctx.Done()
		return ports.HistoryReply{}, ctx.Err()
	}
	return s.ShardStore.History(ctx, r)
}

// declaredIn declares queues in a store.
func declaredIn(t *testing.T, store ports.ShardStore, queues ...string) {
	t.Helper()
	for _, name := range queues {
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: name, Shards: 1})
		must(t, err)
	}
}

// looked returns the result of a look of top.
func looked(t *testing.T, seen *top) (string, error) {
	t.Helper()
	var b strings.Builder
	seen.look(t.Context())
	a := &app{process: process{stdout: &b}, output: "table"}
	err := a.showTop(seen)
	return b.String(), err
}

func newTop(store inspect.Store, queues ...string) *top {
	return &top{inspector: inspect.New(store, inspect.Options{}), queues: queues, answerTime: inspect.ServersPatience}
}

// When the store can't be reached any more, top still shows the last figures, and how old they are.
func TestTopSaysThatItsFiguresAreOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := skeintest.NewFailingStore(memory.New(memory.Options{}))
		declaredIn(t, store, "orders")
		seen := newTop(store)
		if text, err := looked(t, seen); err != nil || !strings.Contains(text, "orders") ||
			strings.Contains(text, "are old") {
			t.Errorf("%v:\n%s", err, text)
		}

		time.Sleep(time.Minute)
		store.Fail(skeintest.Fault{})
		text, err := looked(t, seen)
		if !errors.Is(err, skeintest.ErrInjected) {
			t.Errorf("of a store that is away: %v", err)
		}
		for _, want := range []string{
			"orders", "these figures are old: the store has not answered for 1m0s", "does not answer",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is missing:\n%s", want, text)
			}
		}

		store.Heal()
		if text, err := looked(t, seen); err != nil || strings.Contains(text, "are old") {
			t.Errorf("%v:\n%s", err, text)
		}
	})
}

// A store that refuses a look has answered it: the error is all that is shown.
func TestTopShowsNothingThatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := skeintest.NewFailingStore(memory.New(memory.Options{}))
		if text, err := looked(t, newTop(store, "nosuch")); text != "" || !errors.Is(err, inspect.ErrUnknownQueue) {
			t.Errorf("of a queue that is unknown: %v:\n%s", err, text)
		}
		store.Fail(skeintest.Fault{Err: ports.ErrUnusable})
		if text, err := looked(t, newTop(store)); text != "" || !errors.Is(err, ports.ErrUnusable) || isPartial(err) {
			t.Errorf("of a store that can't be used: %v:\n%s", err, text)
		}
	})
}

// Statistics are shown although the calls beside them fail, and top continues.
func TestTopGoesOnWithStatisticsAlone(t *testing.T) {
	away := errors.New("nobody answers")
	queues := []string{"mails", "orders", "reports"}
	for name, tt := range map[string]struct {
		store observedStore
		fault string
		says  int
	}{
		"checks":       {observedStore{unchecked: away}, "", 1},
		"history":      {observedStore{}, "History", len(queues)},
		"servers":      {observedStore{}, "Nodes", 1},
		"slow history": {observedStore{slow: true}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := skeintest.NewFailingStore(memory.New(memory.Options{}))
				declaredIn(t, store, queues...)
				if tt.fault != "" {
					store.Fail(skeintest.Fault{Method: tt.fault})
				}

				tt.store.ShardStore = store
				text, err := looked(t, newTop(tt.store))

				if !isPartial(err) || strings.Count(err.Error(), "not known") != tt.says {
					t.Errorf("%v; want %d errors of a part", err, tt.says)
				}
				if !strings.Contains(text, "orders") || strings.Contains(text, "are old") {
					t.Errorf("it shows:\n%s", text)
				}
			})
		})
	}
}

// A queue whose jobs are all orphans is unserved, and none is while the servers are not known.
func TestTheStateOfAQueueInTop(t *testing.T) {
	line := func(fresh, orphaned int64, servers int) *statLine {
		return &statLine{
			QueueStats: inspect.QueueStats{Counts: inspect.Counts{Fresh: fresh, Claimed: orphaned, Orphaned: orphaned}},
			servers:    servers,
		}
	}
	for want, lines := range map[string][]*statLine{
		"unserved": {line(1, 0, 0), line(0, 1, 0)},
		"":         {line(1, 1, 1), line(0, 0, 0), line(1, 1, -1)},
	} {
		for _, l := range lines {
			if got := queueState(l); got != want {
				t.Errorf("%d fresh and %d orphaned jobs, %d servers: %q, want %q",
					l.Fresh, l.Orphaned, l.servers, got, want)
			}
		}
	}
}

// Jobs at their last retry are a line of top, as of the dashboard.
func TestTopNamesJobsAtTheirLastRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(memory.Options{})
		client := skein.NewClient(store, skein.ClientOptions{})
		q := skein.NewQueue[int]("orders", skein.QueueOptions[int]{
			MaxRetries: 5,
			Backoff:    func(int) time.Duration { return time.Minute },
		})
		must(t, q.Push(t.Context(), client, "order-7", 1))

		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		server := skein.NewServer(
			store,
			skein.ServerOptions{Logger: slog.New(slog.DiscardHandler)},
			q.Handler(func(context.Context, string, []int) error { return errors.New("boom") }),
		)
		go func() { ended <- server.Run(ctx) }()

		const line = "1 job waits for the last of its 5 retries; " +
			"if it fails, a payload goes to the morgue or the job is held: order-7"
		for failures, want := range []bool{1: false, 2: false, 3: false, 4: false, 5: true, 6: false} {
			if failures > 0 {
				if text, err := looked(t, newTop(store)); err != nil || strings.Contains(text, line) != want {
					t.Errorf("after %d failures: %v:\n%s", failures, err, text)
				}
				time.Sleep(time.Minute)
			} else {
				time.Sleep(30 * time.Second) // the first failure
			}
		}

		stop()
		must(t, <-ended)
	})
}
