package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// lines are those that have all the texts, without their time.
func (l *logBuffer) lines(texts ...string) (found []string) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
			found = append(found, line)
		}
	}
	return found
}

// doings counts, for each kind of loop, the lines that have a text.
func (l *logBuffer) countByLoop(text string) map[string]int {
	counts := make(map[string]int)
	for _, line := range l.lines(text) {
		_, doing, _ := strings.Cut(line, "doing=")
		doing, _, _ = strings.Cut(strings.TrimPrefix(doing, `"`), " ")
		counts[doing]++
	}
	return counts
}

func TestAnOutageIsOneLineForEachLoopAndCauseRepeatedAfter30s(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), shards(5))
		w.sleep(10 * time.Second)
		for i := range 5 {
			w.push(idIn(i, 5), "x")
		}
		n.link.set(down)
		w.sleep(100 * time.Second)
		fails := n.log.countByLoop("the store fails")
		for doing, atMost := range map[string]int{"poll": 4, "announce": 4, "acquire": 3, "renew": 1, "turn": 1} {
			if fails[doing] < 1 || fails[doing] > atMost {
				w.Errorf("%q: %d lines in 100 s, want 1 to %d", doing, fails[doing], atMost)
			}
		}
		if fails["announce"] < 3 {
			w.Errorf("announcements: %d lines in 100 s, want one each 30 s", fails["announce"])
		}
		if lost := n.log.count(`msg="skein: lease lost"`); lost != 5 {
			w.Errorf("%d lines of lost leases, want 5", lost)
		}
		w.sleep(10 * time.Millisecond)
		n.link.set(up)
		w.sleep(20 * time.Second)
		if diff := cmp.Diff(map[string]int{"poll": 1, "announce": 1, "acquire": 1, "renew": 1, "turn": 1}, n.log.countByLoop("answers again")); diff != "" {
			w.Errorf("lines that say that the store is back (-want +got):\n%s\n%v", diff, n.log)
		}
	})
}

func TestEachCauseOfAnOutageIsALineOfItsOwn(t *testing.T) {
	inWorld(t, func(w *world) {
		calls := 0
		n := w.start(each(succeed), shards(4))
		w.sleep(poll)
		n.link.change(func() {
			for i := range 4 { // shards, ports and the like are no causes of their own
				n.link.broken[shardOfQueue(i)] = fmt.Errorf("dial tcp 10.0.0.1:%d: connection refused", 4000+i)
			}
		})
		for i := range 4 {
			w.push(idIn(i, 4), "x")
		}
		w.sleep(5 * time.Second)
		if got := n.log.lines("the store fails", "doing=turn"); len(got) != 1 {
			w.Errorf("lines %q, want one", got)
		}
		n.link.change(func() {
			for i := range 4 {
				n.link.broken[shardOfQueue(i)] = errors.New("wrong password")
			}
		})
		w.sleep(5 * time.Second)
		if got := n.log.lines("the store fails", "doing=turn"); len(got) != 2 || !strings.Contains(got[1], "wrong password") {
			w.Errorf("lines %q, want a second one for the new cause", got)
		}
		n.link.change(func() {
			for i := range 4 {
				n.link.broken[shardOfQueue(i)] = fmt.Errorf("request %q failed", strings.Repeat("x", calls))
				calls++
			}
		})
		w.sleep(10 * time.Second)
		n.link.heal()
		w.sleep(2 * poll)
		if got := n.log.lines("answers again", "doing=turn"); len(got) != 1 {
			w.Errorf("lines %q, want one", got)
		}
	})
}

func TestATurnThatHangsIsLoggedAsSuch(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(poll)
		n.link.change(func() { n.link.stuck[shardOfQueue(0)] = true })
		w.push("job", "x")
		w.sleep(3 * ttl)
		got := n.log.lines("the store fails")
		if len(got) < 2 || len(got) > 4 || !strings.Contains(got[0], "takes too long") || !strings.Contains(got[0], "shard=orders/0") {
			w.Errorf("lines %q, want 2 to 4 in %v, which name the shard and say that its turn takes too long", got, 3*ttl)
		}
	})
}

func TestAnErrorOfWakeupsIsLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		refused := true
		n := w.start(each(succeed), func(s *setup) {
			s.link.refuse = func(method string) bool { return method == "Wakeups" && refused }
		})
		w.sleep(time.Minute)
		if got := n.log.lines("the store fails", `doing="listen for wake-ups"`, errDown.Error()); len(got) != 2 {
			w.Errorf("lines %q, want 2 in a minute", got)
		}
		n.link.change(func() { refused = false })
		w.sleep(2 * poll)
		if got := n.log.lines("answers again", `doing="listen for wake-ups"`); len(got) != 1 {
			w.Errorf("lines %q, want one", got)
		}
	})
}

func TestAStopIsNoOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), shards(3), roundTrip(time.Second))
		w.sleep(10*time.Second + 100*time.Millisecond) // a poll is under way
		n.stop()
		if got := n.log.lines("level=WARN"); len(got) > 0 {
			w.Errorf("warnings: %q", got)
		}
	})
}

func TestWhatNoWaitingCuresEndsRunIfTheFirstExchangeFailsSo(t *testing.T) {
	for name, absent := range map[string]time.Duration{"at once": 0, "after a minute without a store": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				link := newLink(unusable{w.store})
				link.spin.t = w.T
				if absent > 0 {
					link.set(down)
					time.AfterFunc(absent, func() { link.set(up) })
				}
				e := engine.New(link, engine.Config{
					Queues: []*engine.Queue{newQueue(queueName, each(succeed))}, Owner: "owner", Lanes: 1, PollInterval: poll, LeaseTTL: ttl,
					Splitter: core.LaneSplitter{}, Scheduler: core.Lag, Logger: discard,
				})
				ctx, cancel := context.WithTimeout(w.Context(), time.Hour)
				defer cancel()
				if err := e.Run(ctx); !errors.Is(err, ports.ErrUnusable) || !strings.Contains(err.Error(), "wrong password") {
					w.Errorf("Run: %v, want the store's ErrUnusable", err)
				}
				w.within("Run returned", w.elapsed(), absent, absent+2*time.Second)
			})
		})
	}
}

func TestAStoreThatBecomesUnusableIsAnOutage(t *testing.T) {
	inWorld(t, func(w *world) {
		a := w.audit()
		n := w.start(a.watch(succeed))
		w.sleep(poll)
		n.link.swap(unusable{w.store})
		w.push("job", "x")
		w.sleep(10 * time.Minute)
		n.link.swap(w.store)
		w.sleep(ttl)
		a.wantRuns("job", 1)
	})
}
