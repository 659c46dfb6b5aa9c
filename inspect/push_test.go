package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// pushed are the payloads of the queued job of an id, with their scores.
func pushed(t *testing.T, i *inspect.Inspector, queue, id string) (list []string) {
	t.Helper()
	for p, err := range i.Payloads(t.Context(), queue, id, inspect.PayloadOptions{}) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, fmt.Sprintf("%s@%v", p.Data, p.Score))
	}
	return list
}

func entry(id, data string, score float64) core.Entry {
	return core.Entry{ID: id, Payload: core.Payload{Data: []byte(data), Score: score}}
}

func declare(t *testing.T, store ports.Producer, queue string, shards int, merge core.MergeRule) {
	t.Helper()
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: queue, Shards: shards, Merge: merge}); err != nil {
		t.Fatal(err)
	}
}

// A push merges by the rule of the queue, whose stamp Push puts on.
func TestPushMergesByTheRuleOfTheQueue(t *testing.T) {
	store := memory.New(memory.Options{})
	i := inspect.New(store, inspect.Options{})
	every := core.MergeRule{Same: core.SamePush}
	for queue, tt := range map[string]struct {
		merge core.MergeRule
		want  []string
		met   inspect.Pushed
	}{
		"union": {core.MergeRule{}, []string{"a@1", "b@2"}, inspect.Pushed{New: 1, Merged: 1, Duplicate: 1}},
		"newest": {core.MergeRule{Stays: core.Highest}, []string{"b@2", "a@3"},
			inspect.Pushed{New: 1, Merged: 1, Duplicate: 1}},
		"latest": {core.MergeRule{Stays: core.Highest}.Last(1), []string{"a@3"}, inspect.Pushed{New: 1, Merged: 2}},
		"every":  {every, []string{"a@1", "b@2", "a@3"}, inspect.Pushed{New: 1, Merged: 2}},
	} {
		declare(t, store, queue, 3, tt.merge)
		entries := []core.Entry{entry("x", "a", 1), entry("x", "b", 2), entry("x", "a", 3)}
		met, err := i.Push(t.Context(), queue, core.PushRule{}, entries...)
		if met.Now.IsZero() {
			t.Errorf("%s: no time", queue)
		}
		met.Now = time.Time{}
		if err != nil || met != tt.met {
			t.Errorf("%s: met %+v, %v; want %+v", queue, met, err, tt.met)
		}
		if diff := cmp.Diff(tt.want, pushed(t, i, queue, "x")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", queue, diff)
		}

		again, err := i.Push(t.Context(), queue, core.PushRule{}, entries[1:]...)
		if err != nil || again.New != 0 || again.Merged != 0 {
			t.Errorf("%s: the repeat met %+v, %v", queue, again, err)
		}
		if string(entries[0].Data) != "a" {
			t.Errorf("%s: the entries of the caller were changed", queue)
		}
	}
}

func TestPushRefuses(t *testing.T) {
	store := memory.New(memory.Options{})
	i := inspect.New(store, inspect.Options{})
	declare(t, store, "orders", 2, core.MergeRule{})
	for name, tt := range map[string]struct {
		inspector *inspect.Inspector
		queue     string
		rule      core.PushRule
		entries   []core.Entry
		want      error
	}{
		"an unknown queue":   {i, "nowhere", core.PushRule{}, []core.Entry{entry("x", "a", 1)}, inspect.ErrUnknownQueue},
		"an invalid id":      {i, "orders", core.PushRule{}, []core.Entry{entry("x", "a", 1), entry("", "a", 1)}, inspect.ErrInvalidID},
		"an invalid rule":    {i, "orders", core.PushRule{Limit: -1}, []core.Entry{entry("x", "a", 1)}, core.ErrInvalidRule},
		"too many entries":   {i, "orders", core.PushRule{}, make([]core.Entry, inspect.MaxPush+1), inspect.ErrInvalidRequest},
		"no store":           {inspect.New(nil, inspect.Options{}), "orders", core.PushRule{}, nil, inspect.ErrInvalidOptions},
		"no inspector":       {nil, "orders", core.PushRule{}, nil, inspect.ErrInvalidOptions},
		"an empty inspector": {new(inspect.Inspector), "orders", core.PushRule{}, nil, inspect.ErrInvalidOptions},
	} {
		if _, err := tt.inspector.Push(t.Context(), tt.queue, tt.rule, tt.entries...); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	if got := pushed(t, i, "orders", "x"); got != nil {
		t.Errorf("stored: %q", got)
	}
	if met, err := i.Push(t.Context(), "orders", core.PushRule{}); err != nil || met.New != 0 {
		t.Errorf("no entries: %+v, %v", met, err)
	}
}

// Many pushes cost one read of the queues, and a queue that was declared anew is read again.
func TestPushKnowsTheQueueForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reads := 0
		inner := memory.New(memory.Options{})
		store := storekit.Intercept(inner, func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
			if call.Method == "Queues" {
				reads++
			}
			return next(ctx)
		})
		i := inspect.New(store, inspect.Options{})
		declare(t, inner, "orders", 2, core.MergeRule{})
		push := func(n int) {
			t.Helper()
			for at := range n {
				if _, err := i.Push(t.Context(), "orders", core.PushRule{}, entry("x", fmt.Sprint(at), 1)); err != nil {
					t.Fatal(err)
				}
			}
		}

		push(100)
		if reads != 1 {
			t.Errorf("100 pushes read the queues %d times", reads)
		}
		time.Sleep(time.Second)
		if push(1); reads != 2 {
			t.Errorf("a push a second later has read the queues %d times, want 2", reads)
		}

		if _, err := i.Delete(t.Context(), "orders", inspect.JobIDs("x")); err != nil {
			t.Fatal(err)
		}
		if err := i.Forget(t.Context(), "orders"); err != nil {
			t.Fatal(err)
		}
		declare(t, inner, "orders", 7, core.MergeRule{Same: core.SamePush})
		push(1)
		if got := pushed(t, i, "orders", "x"); len(got) != 1 || got[0] != "0@1" {
			t.Errorf("after a new declaration: %q", got)
		}
	})
}

// Entries that are not known to be stored are named, and a push is neither logged nor audited.
func TestPushNamesWhatIsNotStored(t *testing.T) {
	inner := memory.New(memory.Options{})
	broken := errors.New("the network is gone")
	store := storekit.Intercept(inner, func(ctx context.Context, call storekit.Call, next func(context.Context) error) error {
		if err := next(ctx); err != nil || call.Method != "Push" {
			return err
		}
		return &ports.PushError{Entries: []int{1}, Err: broken}
	})
	var log strings.Builder
	i := inspect.New(store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	declare(t, inner, "orders", 2, core.MergeRule{})

	_, err := i.Push(t.Context(), "orders", core.PushRule{}, entry("x", "a", 1), entry("y", "a", 1))
	var partly *inspect.PushError
	if !errors.As(err, &partly) || !errors.Is(err, broken) || !cmp.Equal(partly.Entries, []int{1}) {
		t.Errorf("%v", err)
	}
	if log.Len() > 0 {
		t.Errorf("log: %s", log.String())
	}
	for action, err := range i.Actions(t.Context(), inspect.ActionsOptions{}) {
		t.Errorf("audited: %+v, %v", action, err)
	}
}
