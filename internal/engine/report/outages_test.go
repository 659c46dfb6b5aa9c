package report_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine/report"
	"github.com/skeinq/skein/ports"
)

// failures is an observer that counts failures of the store by call.
type failures struct {
	ports.NopObserver
	calls map[string]int
}

func (f failures) StoreFailed(e ports.FailureEvent) { f.calls[e.Call]++ }

// Two loops of a kind are one outage, which ends with the second of them. An error that differs in
// numbers alone is no new cause, and the end of the calls' context is no outage.
func TestAnOutageOfTwoLoopsIsOneLineAMinuteForEachCause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text strings.Builder
		lines := func(message string) int { return strings.Count(text.String(), message) }
		seen := failures{calls: make(map[string]int)}

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		outages := report.NewOutages(ctx, slog.New(slog.NewTextHandler(&text, nil)), seen)
		one, two := outages.Loop("turn", core.Shard{Queue: "q"}), outages.Loop("turn", core.Shard{Queue: "q", Index: 1})
		listen := outages.Loop("listen", core.Shard{})

		for i := range 90 {
			one.Called(fmt.Errorf("port %d refused", i))
			two.Called(fmt.Errorf("port %d refused", i))
			time.Sleep(time.Second)
		}

		one.Called(nil)
		if fails, back := lines("the store fails"), lines("the store answers again"); fails != 2 || back != 0 ||
			seen.calls["turn"] != 180 {
			t.Errorf("%d lines of failures, %d of the end, %d events; want 2, 0 and 180",
				fails, back, seen.calls["turn"])
		}

		two.Called(errors.New("wrong password"))
		two.Called(nil)
		two.Called(nil)
		if fails, back := lines("the store fails"), lines("the store answers again"); fails != 3 || back != 1 {
			t.Errorf("%d lines of failures and %d of the end, want 3 and 1", fails, back)
		}

		listen.Called(errors.New("boom"))
		if lines("wake-ups don't work") != 1 || lines(`doing="listen for wake-ups"`) != 1 || seen.calls["listen"] != 1 {
			t.Errorf("a subscription that fails: %s", text.String())
		}

		cancel()
		one.Called(errors.New("after the end"))
		if lines("after the end") != 0 || seen.calls["turn"] != 181 {
			t.Errorf("after the end of the calls: %s", text.String())
		}
	})
}
