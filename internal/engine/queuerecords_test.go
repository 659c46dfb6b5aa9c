package engine_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// While the records of queues can't be read, what is in force stays, and the outage is logged.
func TestAnOutageOfRecordsIsLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), spread)
		w.sleep(announces)
		n.link.change(func() { n.link.refuse = func(method string) bool { return method == "Queues" } })
		w.sleep(2 * announces)
		n.wantLines(1, "level=WARN", "the store fails", "read the settings of queues")
		n.link.change(func() { n.link.refuse = func(string) bool { return false } })
		w.sleep(announces)
		n.wantLines(1, "level=INFO", "the store answers again", "read the settings of queues")
	})
}

func TestRunDueEndsIfItCannotReadRecords(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.push("a", "x")
		l := newLink(w.store.Open())
		l.refuse = func(method string) bool { return method == "Queues" }
		jobs, err := w.runDue(l, newQueue(queueName, each(succeed)), "runner")
		if jobs > 0 || err == nil || !strings.Contains(err.Error(), "read the settings of queues") {
			t.Errorf("%d jobs ran without settings; error %v", jobs, err)
		}
	})
}

// The records are read once per announce interval, also if each call takes a part of it.
func TestRecordsAreReadOncePerInterval(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), spread, func(s *setup) {
			s.link.linger["Queues"] = memberTTL / 4
			s.RecoverOrphans = false // that lists the queues as well
		})
		w.sleep(10 * memberTTL)
		// One call at the start, and three in each TTL.
		if calls := n.link.count("Queues"); calls < 29 || calls > 31 {
			t.Errorf("the records were read %d times in %v, want about 30", calls, 10*memberTTL)
		}
	})
}

// hiddenQueue is a store whose list lacks the queue orders while hidden is set.
type hiddenQueue struct {
	notifyingLink
	hidden *atomic.Bool
}

func (s hiddenQueue) Queues(ctx context.Context) ([]ports.Queue, error) {
	queues, err := s.notifyingLink.Queues(ctx)
	if s.hidden.Load() {
		queues = slices.DeleteFunc(queues, func(q ports.Queue) bool { return q.Name == queueName })
	}
	return queues, err
}

// A queue that the store no longer lists keeps its settings, and gets none of another queue.
func TestAQueueThatIsNotListedKeepsItsSettings(t *testing.T) {
	inWorld(t, func(w *world) {
		var hidden atomic.Bool
		w.declare(1)
		w.set(setting(core.SettingMaxLanes, 2))
		n := w.start(nil, spread, serving(newQueue("red", each(succeed)), newQueue(queueName, each(succeed))), func(s *setup) {
			s.wrap = func(l notifyingLink) engine.Store { return hiddenQueue{l, &hidden} }
		})
		w.sleep(announces)
		n.wantLines(1, "a setting of a queue applies", "queue=orders", "setting=max-lanes")

		hidden.Store(true)
		w.sleep(time.Minute)
		n.wantLines(0, "a setting of a queue was unset")
	})
}

// A server that holds no permits of a queue does not listen for them until the queue gets a bound over
// all servers, and other settings leave its subscription as it is.
func TestAFirstBoundOverAllServersChangesTheSubscription(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), spread)
		w.sleep(announces)
		for _, step := range []struct {
			change core.SettingChange
			calls  int // of Wakeups
		}{
			{setting(core.SettingMaxLanes, 2), 0},
			{setting(core.SettingMaxRunning, 5), 1},
			{setting(core.SettingMaxRunning, 7), 0},
			{unset(core.SettingMaxRunning), 0},
			{setting(core.SettingMaxRunning, 9), 0},
		} {
			before := n.link.count("Wakeups")
			w.set(step.change)
			w.sleep(announces)
			if calls := n.link.count("Wakeups") - before; calls != step.calls {
				t.Errorf("after %+v the server subscribes %d times, want %d", step.change, calls, step.calls)
			}
		}
	})
}

// A setting is logged once, also if others change, with the program's value or 0, and a server
// announces only what the program sets.
func TestASettingIsLoggedWhenItChanges(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), spread)
		w.sleep(announces)
		w.set(setting(core.SettingMaxLanes, 2))
		w.sleep(announces)
		w.set(setting(core.SettingMaxRunning, 5))
		w.sleep(announces)
		n.wantLines(1, "a setting of a queue applies", "setting=max-lanes", "value=2", "own=0")
		n.wantLines(1, "a setting of a queue applies", "setting=max-running", "value=5", "own=0")

		if node, _ := w.announced(n); len(node.Status.Queues[0].Code) > 0 {
			t.Errorf("the program sets nothing, and the server announces %v", node.Status.Queues[0].Code)
		}
	})
}
