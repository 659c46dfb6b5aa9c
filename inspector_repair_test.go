package skein_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/skeintest"
)

func TestForgetFreesTheNameOfAnEmptyQueue(t *testing.T) {
	s := newSite(t)
	s.pushAll("order-1")
	refuse := func(what string, want error) {
		t.Helper()
		if err := s.Forget(t.Context(), "orders"); !errors.Is(err, want) {
			t.Errorf("with %s: %v, want %v", what, err, want)
		}
	}
	refuse("a queued job", skein.ErrNotEmpty)
	if _, err := s.Delete(t.Context(), "orders", []string{"order-1"}, skein.BulkOptions{}); err != nil {
		t.Fatal(err)
	}
	s.claim()
	refuse("a server that works it", skein.ErrLeaseHeld)
	s.advance(2 * time.Hour)
	if err := s.Forget(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	refuse("nothing left", skein.ErrUnknownQueue)
	s.declare("orders", 7)
}

func TestForgetThatLosesItsReplyHasForgotten(t *testing.T) {
	s := skeintest.New()
	orders := skein.NewQueue[string]("orders", skein.QueueOptions[string]{})
	if err := orders.Push(t.Context(), s.Client, "order-1", "placed"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Inspector.Delete(t.Context(), "orders", []string{"order-1"}, skein.BulkOptions{}); err != nil {
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

func (m *miscounting) Recount(ctx context.Context, s core.Shard) (ports.RecountReply, error) {
	reply, err := m.ShardStore.Recount(ctx, s)
	if s == m.shard {
		reply.Before.Fresh++
	}
	return reply, err
}

func TestRecountNamesTheShardsThatWereWrong(t *testing.T) {
	s := newSite(t)
	s.pushAll("order-1", "order-2", "order-3")
	wrong, err := s.Recount(t.Context(), "orders")
	if err != nil || len(wrong) > 0 {
		t.Errorf("Recount of a sound queue = %v, %v", wrong, err)
	}
	m := &miscounting{s.store, core.Shard{Queue: "orders", Index: 1}}
	wrong, err = skein.NewInspector(m, skein.InspectorOptions{}).Recount(t.Context(), "orders")
	if err != nil || len(wrong) != 1 {
		t.Fatalf("Recount = %v, %v; want one shard", wrong, err)
	}
	if diff := cmp.Diff([2]any{m.shard, wrong[0].After.Fresh + 1}, [2]any{wrong[0].Shard, wrong[0].Before.Fresh}); diff != "" {
		t.Errorf("what was wrong (-want +got):\n%s", diff)
	}
}

func TestClaimedJobOfADeadNodeIsShownAsSuch(t *testing.T) {
	s := newSite(t)
	s.pushAll("order-1")
	s.claim()
	want := func(over bool) {
		t.Helper()
		for job, err := range s.Claimed(t.Context(), "orders", skein.ListOptions{}) {
			if err != nil || job.LeaseOver != over {
				t.Errorf("%s: LeaseOver %v, %v; want %v", job.ID, job.LeaseOver, err, over)
			}
		}
	}
	want(false)
	s.advance(2 * time.Hour)
	want(true)
}
