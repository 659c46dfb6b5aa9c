package engine_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestTheLogSaysThatTheStoreIsBackAlsoWhenNothingIsPolled(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed))
		w.sleep(10 * poll)
		n.link.set(down)
		w.sleep(5 * poll) // polls fail
		n.link.set(up)
		for range 200 { // the shard is never quiet enough for a poll
			w.push("job", "x")
			w.sleep(100 * time.Millisecond)
		}
		fails, back := len(n.log.lines("the store fails", "doing=poll")),
			len(n.log.lines("answers again", "doing=poll"))
		if fails != 1 || back != 1 {
			w.Errorf("the log says %d times that the store fails and %d that it is back, want once each", fails, back)
		}
	})
}

func TestAnOutageWhoseCausesNeverRepeatIsFewLines(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(untilCancelled))
		w.sleep(poll)
		w.push("job", "x")
		for cause := 'a'; cause <= 'z'; cause++ {
			n.link.change(func() { n.link.broken[shardOfQueue(0)] = fmt.Errorf("cause %c", cause) })
			w.sleep(poll)
		}
		n.link.heal()
		if lines := n.log.countByLoop("the store fails")["turn"]; lines < 8 || lines > 9 {
			w.Errorf("%d lines of 26 causes within 30 s, want 8 and one for the others", lines)
		}
	})
}

func TestAnOutageIsOneLineForEachLoopAndCauseRepeatedEachMinute(t *testing.T) {
	inWorld(t, func(w *world) {
		n := w.start(each(succeed), shards(5))
		w.sleep(10 * time.Second)
		for i := range 5 {
			w.push(idIn(i, 5), "x")
		}

		n.link.set(down)
		w.sleep(200 * time.Second)
		fails := n.log.countByLoop("the store fails")
		for doing, atMost := range map[string]int{
			"poll":     4,
			"announce": 4,
			"record":   4,
			"acquire":  3,
			"renew":    1,
			"turn":     1,
		} {
			if fails[doing] < 1 || fails[doing] > atMost {
				w.Errorf("%q: %d lines in 200 s, want 1 to %d", doing, fails[doing], atMost)
			}
		}
		if fails["announce"] < 3 {
			w.Errorf("announcements: %d lines in 200 s, want one each minute", fails["announce"])
		}
		if lost := n.log.count(`msg="lease lost"`); lost != 5 {
			w.Errorf("%d lines of lost leases, want 5", lost)
		}

		w.sleep(10 * time.Millisecond)
		n.link.set(up)
		w.sleep(20 * time.Second)
		if diff := cmp.Diff(
			map[string]int{"poll": 1, "look": 1, "read": 1, "announce": 1, "record": 1, "acquire": 1, "renew": 1, "turn": 1},
			n.log.countByLoop("answers again"),
		); diff != "" {
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
		if got := n.log.lines("the store fails", "doing=turn"); len(got) != 2 ||
			!strings.Contains(got[1], "wrong password") {
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
		got := n.log.lines("the store fails", "doing=turn")
		if len(got) < 2 || len(got) > 4 || !strings.Contains(got[0], "takes too long") ||
			!strings.Contains(got[0], "shard=orders/0") {
			w.Errorf("lines %q, want 2 to 4 in %v, which name the shard and say that its turn takes too long",
				got, 3*ttl)
		}
	})
}

func TestAnErrorOfWakeupsIsLogged(t *testing.T) {
	inWorld(t, func(w *world) {
		refused := true
		n := w.start(each(succeed), func(s *setup) {
			s.link.refuse = func(method string) bool { return method == "Wakeups" && refused }
		})
		w.sleep(2 * time.Minute)
		if got := n.log.lines("wake-ups don't work", `doing="listen for wake-ups"`, errDown.Error()); len(got) != 2 {
			w.Errorf("lines %q, want 2 in two minutes", got)
		}
		n.link.change(func() { refused = false })
		w.sleep(2 * poll)
		if got := n.log.lines("wake-ups work again", `doing="listen for wake-ups"`); len(got) != 1 {
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

var discard = slog.New(slog.DiscardHandler)

// unusable is a store that no waiting cures.
type unusable struct{ *memory.Store }

var errPassword = fmt.Errorf("%w: wrong password; set the right one", ports.ErrUnusable)

func (unusable) Declare(context.Context, ports.DeclareRequest) (ports.DeclareReply, error) {
	return ports.DeclareReply{}, errPassword
}

func (unusable) Acquire(context.Context, ports.AcquireRequest) (ports.AcquireReply, error) {
	return ports.AcquireReply{}, errPassword
}

func (unusable) Turn(context.Context, ports.TurnRequest) (ports.TurnReply, error) {
	return ports.TurnReply{}, errPassword
}

func (unusable) Renew(context.Context, ports.RenewRequest) (ports.RenewReply, error) {
	return ports.RenewReply{}, errPassword
}

func (unusable) Heads(context.Context, []core.Shard) (ports.HeadsReply, error) {
	return ports.HeadsReply{}, errPassword
}

func (unusable) Announce(context.Context, ports.AnnounceRequest) (ports.AnnounceReply, error) {
	return ports.AnnounceReply{}, errPassword
}

func TestDuringAnOutageNobodySaysThatTheStoreAnswersAgain(t *testing.T) {
	for name, state := range map[string]linkState{"calls fail": down, "calls hang": hanging} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				n := w.start(each(succeed), shards(3))
				w.sleep(3 * poll)
				n.link.set(state)
				w.sleep(ttl)
				if n.log.count("the store fails") == 0 || n.log.count("answers again") != 0 {
					w.Errorf("the log during the outage:\n%s", n.log.tail(20))
				}
				n.link.set(up)
				w.sleep(ttl)
				if n.log.count("answers again") == 0 {
					w.Errorf("the log after the outage:\n%s", n.log.tail(20))
				}
			})
		})
	}
}
