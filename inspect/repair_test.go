package inspect_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

func TestForgetFreesTheNameOfAnEmptyQueue(t *testing.T) {
	s := newFixture(t)
	s.pushAll("order-1")

	refuse := func(what string, want error) {
		t.Helper()
		if err := s.Forget(t.Context(), "orders"); !errors.Is(err, want) {
			t.Errorf("with %s: %v, want %v", what, err, want)
		}
	}

	refuse("a queued job", inspect.ErrNotEmpty)
	if _, err := s.Delete(t.Context(), "orders", inspect.JobIDs("order-1")); err != nil {
		t.Fatal(err)
	}

	s.claim()
	refuse("a server that works it", inspect.ErrLeaseHeld)

	s.advance(2 * time.Hour)
	if err := s.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	refuse("nothing left", inspect.ErrUnknownQueue)
	s.declare("orders", 7)
}

func TestForgetThatLosesItsReplyHasForgotten(t *testing.T) {
	s := skeintest.New()
	orders := skein.NewQueue[string]("orders", skein.QueueOptions[string]{})
	if err := orders.Push(t.Context(), s.Client, "order-1", "placed"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Inspector.Delete(t.Context(), "orders", inspect.JobIDs("order-1")); err != nil {
		t.Fatal(err)
	}

	s.Fail(skeintest.Fault{Method: "Forget", Times: 1, ReplyLost: true})
	if err := s.Inspector.Forget(t.Context(), "orders"); err != nil {
		t.Error(err)
	}

	if queues, err := s.Inspector.Queues(t.Context()); err != nil || len(queues) > 0 {
		t.Errorf("Queues = %v, %v; want none", queues, err)
	}
}

// miscounting is a store that counts one job too many in a shard until it is
// recounted.
type miscounting struct {
	ports.ShardStore
	shard core.Shard
}

func (m *miscounting) Recount(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	reply, err := m.ShardStore.Recount(ctx, r)
	if r.Shard == m.shard {
		reply.Before.Fresh++
	}
	return reply, err
}

func TestRecountNamesTheShardsThatWereWrong(t *testing.T) {
	s := newFixture(t)
	s.pushAll("order-1", "order-2", "order-3")
	wrong, err := s.Recount(t.Context(), "orders", nil)
	if err != nil || len(wrong) > 0 {
		t.Errorf("Recount of a sound queue = %v, %v", wrong, err)
	}

	m := &miscounting{s.store, core.Shard{Queue: "orders", Index: 1}}
	wrong, err = inspect.New(m, inspect.Options{}).Recount(t.Context(), "orders", nil)
	if err != nil || len(wrong) != 1 {
		t.Fatalf("Recount = %v, %v; want one shard", wrong, err)
	}
	if diff := cmp.Diff([2]any{m.shard, wrong[0].After.Fresh + 1},
		[2]any{wrong[0].Shard, wrong[0].Before.Fresh}); diff != "" {
		t.Errorf("what was wrong (-want +got):\n%s", diff)
	}
}

// A recount whose reply is lost may have corrected the shard, which its repeat can't tell.
func TestRecountNamesTheShardsWhoseReplyWasLost(t *testing.T) {
	s := newFixture(t)
	s.pushAll("order-1", "order-2", "order-3")
	shard, calls := core.Shard{Queue: "orders", Index: 1}, 0
	s.intercept().after = func(method string) error {
		if method != "Recount" {
			return nil
		}
		if calls++; calls == shard.Index+1 {
			return errors.New("reply lost")
		}
		return nil
	}

	var last inspect.Progress
	wrong, err := s.Recount(t.Context(), "orders", func(p inspect.Progress) { last = p })
	if err != nil || len(wrong) != 1 || wrong[0].Shard != shard || !wrong[0].Repeated ||
		wrong[0].Before != wrong[0].After {
		t.Errorf("Recount = %+v, %v; want %v alone, as repeated", wrong, err, shard)
	}
	if last.Handled != 1 {
		t.Errorf("the last report of progress is %+v; want one shard", last)
	}
}

func TestClaimedJobOfADeadNodeIsShownAsSuch(t *testing.T) {
	s := newFixture(t)
	s.pushAll("order-1")
	s.claim()

	want := func(over bool) {
		t.Helper()
		var orphaned int64
		if over {
			orphaned = 1
		}
		if c := s.counts(); c.Claimed != 1 || c.Orphaned != orphaned {
			t.Errorf("Stats count %d claimed and %d orphaned jobs; want 1 and %d", c.Claimed, c.Orphaned, orphaned)
		}
		for job, err := range s.Claimed(t.Context(), "orders", inspect.ListOptions{}) {
			if err != nil || job.LeaseOver != over {
				t.Errorf("%s: LeaseOver %v, %v; want %v", job.ID, job.LeaseOver, err, over)
			}
		}
	}

	want(false)
	s.advance(2 * time.Hour)
	want(true)
}

// refusing is a store that refuses to forget, and counts the calls.
type refusing struct {
	*memory.Store
	err   error
	asked *int
}

func (r refusing) Forget(context.Context, string) error {
	*r.asked++
	return r.err
}

func TestARefusalToForgetIsNotAskedForAgain(t *testing.T) {
	for _, err := range []error{
		ports.ErrNotEmpty,
		&ports.HeldError{Owner: "other"},
		ports.ErrUnusable,
		ports.ErrUnknownQueue,
	} {
		t.Run(err.Error(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, began := 0, time.Now()
				inspector := inspect.New(refusing{memory.New(memory.Options{}), err, &asked}, inspect.Options{})
				if got := inspector.Forget(t.Context(), "orders"); !errors.Is(got, err) {
					t.Errorf("Forget = %v, want %v", got, err)
				}
				if diff := cmp.Diff([]any{1, time.Duration(0)}, []any{asked, time.Since(began)}); diff != "" {
					t.Errorf("calls and time (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// stepping is a store that recounts an entry a step and has counted one too many; others push
// between the steps.
type stepping struct {
	ports.ShardStore
	push func()
}

func (s *stepping) Recount(ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	done, _ := strconv.Atoi(r.After)
	r.After = ""
	reply, err := s.ShardStore.Recount(ctx, r)
	if done == 0 {
		reply.Before.Fresh++
	}
	s.push()
	if reply.Counted = 1; done+1 < int(reply.After.Fresh) {
		reply.Next = strconv.Itoa(done + 1)
	}
	return reply, err
}

// A recount takes all steps of each shard, reports how far it is, and counts nothing as wrong that
// others have changed between the steps.
func TestRecountTakesAllSteps(t *testing.T) {
	s := newFixture(t)
	s.pushAll("order-1", "order-2", "order-3", "order-4", "order-5", "order-6", "order-7")

	pushed := 0
	store := &stepping{s.store, func() {
		if pushed++; pushed <= 4 {
			s.pushAll(fmt.Sprintf("later-%d", pushed))
		}
	}}

	before, err := s.Stats(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}

	var seen []inspect.Progress
	wrong, err := inspect.New(store, inspect.Options{}).Recount(t.Context(), "orders", func(p inspect.Progress) {
		seen = append(seen, p)
	})
	if err != nil {
		t.Fatal(err)
	}

	shards := len(before[0].Shards)
	if len(wrong) != shards {
		t.Errorf("%d shards were wrong, want each of %d", len(wrong), shards)
	}
	for _, w := range wrong {
		if w.Before.Fresh != w.After.Fresh+1 {
			t.Errorf("%v: %d fresh jobs were corrected to %d, want one less", w.Shard, w.Before.Fresh, w.After.Fresh)
		}
	}

	if len(seen) != 7 {
		t.Fatalf("%d reports of progress, want one for each of 7 jobs: %+v", len(seen), seen)
	}
	for i, p := range seen {
		if p.Done != i+1 || p.Total != 7 {
			t.Errorf("report %d is %+v, want %d of 7 done", i, p, i+1)
		}
	}
	if last := seen[6]; last.Handled != shards {
		t.Errorf("the last report is %+v, want %d shards handled", last, shards)
	}
}
