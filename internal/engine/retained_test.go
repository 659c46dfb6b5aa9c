package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

// expirySeen counts the dead letters that were removed.
type expirySeen struct {
	ports.NopObserver
	expired atomic.Int64
}

func (o *expirySeen) DeadLettersExpired(e ports.ExpiryEvent) { o.expired.Add(int64(e.Expired)) }

// pause pauses the queue, so that jobs wait until they are buried.
func (w *world) pause() {
	w.Helper()
	w.must(w.store.Pause(w.Context(), queueName))
}

// bury buries a job of each id.
func (w *world) bury(ids ...string) {
	w.Helper()
	q := w.queueRecord()
	for _, id := range ids {
		w.pushEntries(entry(id))
		step := ports.JobStep{Shard: core.Shard{Queue: queueName, Index: core.ShardOf(id, q.Shards)}, IDs: []string{id}}
		if _, err := w.store.Bury(w.Context(), step); err != nil {
			w.Fatal(err)
		}
	}
}

// wantDead checks how many dead letters there are.
func (w *world) wantDead(want int64) {
	w.Helper()
	if got := w.stats().Dead; got != want {
		w.Errorf("at %v: %d dead letters, want %d", w.elapsed(), got, want)
	}
}

func numbered(name string, n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("%s-%d", name, i))
	}
	return ids
}

func TestDeadLettersOfAnAgeAreRemoved(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(3)
		w.set(core.SettingChange{Name: core.SettingMorgueAge, Value: "1h"})
		w.pause()
		w.bury(numbered("early", 1500)...)
		w.sleep(30 * time.Minute)
		w.bury("late")

		o := &expirySeen{}
		n := w.start(each(succeed), spread, shards(3), func(s *setup) { s.Observer = o })
		w.sleep(29 * time.Minute)
		w.wantDead(1501)
		w.sleep(3 * time.Minute)
		w.wantDead(1)
		w.sleep(30 * time.Minute)
		w.wantDead(0)
		n.wantLines(1, "level=INFO", "dead letters are removed")
		if got := o.expired.Load(); got != 1501 {
			t.Errorf("the observer was told of %d dead letters, want 1501", got)
		}

		// One entry of the audit, which ends after an hour.
		w.wantAudit(0)
		w.sleep(time.Hour)
		w.wantAudit(1501)
	})
}

// wantAudit checks that the audit has one action, that the removal of some dead letters has ended if
// there are any, and is under way otherwise.
func (w *world) wantAudit(handled int) {
	w.Helper()
	actions, err := w.store.Actions(w.Context(), ports.ActionsRequest{})
	w.must(err)
	if len(actions) != 1 {
		w.Fatalf("%d actions, want 1", len(actions))
	}
	a := actions[0]
	if a.Verb != "expire" || a.Actor != "server node-1" || a.Queue != queueName || a.Reason != "morgue-age 1h0m0s" {
		w.Errorf("the action is %+v", a)
	}
	if a.Ended != (handled > 0) || handled > 0 && a.Handled != handled {
		w.Errorf("the action has handled %d, ended %v; want %d", a.Handled, a.Ended, handled)
	}
}

func TestDeadLettersOverANumberAreRemovedOldestFirst(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.pause()
		w.bury(numbered("early", 600)...)
		w.sleep(time.Second)
		w.bury(numbered("late", 10)...)
		w.start(each(succeed), spread, func(s *setup) { s.queue.Keep.Count = 12 })

		w.sleep(9 * time.Minute) // people see it first
		w.wantDead(610)
		w.sleep(2 * time.Minute)
		w.wantDead(12)
		for _, id := range numbered("late", 10) {
			if w.find(id).DeadLetter == nil {
				t.Errorf("the newer dead letter %s was removed", id)
			}
		}

		w.set(setting(core.SettingMorgueCount, 3))
		w.sleep(9 * time.Minute)
		w.wantDead(12)
		w.set(setting(core.SettingMaxLanes, 4)) // another setting changes nothing of that
		w.sleep(2*time.Minute + announces)
		w.wantDead(3)

		w.set(setting(core.SettingMorgueCount, 0))
		w.sleep(time.Minute)
		w.bury(numbered("more", 50)...)
		w.sleep(time.Hour)
		w.wantDead(53)
	})
}

// A server that stops ends its entry of the audit.
func TestTheAuditOfRemovedDeadLettersEndsWithTheServer(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.set(core.SettingChange{Name: core.SettingMorgueAge, Value: "1h"})
		w.pause()
		w.bury("a")
		w.sleep(2 * time.Hour)
		n := w.start(each(succeed), spread)
		w.sleep(2 * time.Minute)
		w.wantDead(0)
		w.wantAudit(0)
		n.stop()
		w.wantAudit(1)
	})
}

// Bounds of the program that apply because a setting was unset are as new as others: an older setting
// of the other bound does not let them begin at once.
func TestUnsettingABoundOfDeadLettersTakesEffectLater(t *testing.T) {
	inWorld(t, func(w *world) {
		w.declare(1)
		w.set(setting(core.SettingMorgueCount, 1000), core.SettingChange{Name: core.SettingMorgueAge, Value: "0"})
		w.pause()
		w.bury("a")
		w.start(each(succeed), spread, func(s *setup) { s.queue.Keep.Age = time.Hour })
		w.sleep(2 * time.Hour)
		w.wantDead(1)

		w.set(unset(core.SettingMorgueAge))
		w.sleep(9 * time.Minute) // people see it first
		w.wantDead(1)
		w.sleep(3 * time.Minute)
		w.wantDead(0)
	})
}

// Dead letters that somebody else removes meanwhile count, also at the very same time, as the server
// does that had the shard before: no more are removed than are too many.
func TestRemovalsBySeveralKeepTheNumberOfDeadLetters(t *testing.T) {
	for _, dead := range []int{150, 350, 2000} {
		inWorld(t, func(w *world) {
			w.declare(1)
			w.pause()
			w.bury(numbered("early", dead)...)
			w.start(each(succeed), spread, func(s *setup) {
				s.queue.Keep.Count = 100
				s.wrap = func(l notifyingLink) engine.Store { return &purgedElsewhere{notifyingLink: l} }
			})
			w.sleep(13 * time.Minute)
			w.wantDead(100)
		})
	}
}

// purgedElsewhere is a store where somebody else carries out the first step of a removal, too.
type purgedElsewhere struct {
	notifyingLink
	done bool
}

func (s *purgedElsewhere) Purge(ctx context.Context, step ports.DeadLetterStep) (ports.StepReply, error) {
	reply, err := s.notifyingLink.Purge(ctx, step)
	if !s.done && err == nil {
		s.done = true
		_, err = s.notifyingLink.Purge(ctx, step)
	}
	return reply, err
}
