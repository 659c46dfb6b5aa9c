package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// sizes returns the lengths of all that a shard keeps something in.
func (s *shard) sizes() map[string]int {
	return map[string]int{
		"ids":               len(s.ids),
		"ready":             s.ready.Len(),
		"parked":            s.parked.Len(),
		"by id":             s.byID.Len(),
		"retrying by time":  s.retrying.byTime.Len(),
		"retrying by id":    s.retrying.byID.Len(),
		"retrying by count": s.retrying.byCount.Len(),
		"claimed":           s.claimed.size,
		"alone":             s.claimed.alone,
		"cancelled":         s.claimed.cancelled,
		"dead":              len(s.morgue.deadLetters),
		"dead by time":      s.morgue.byTime.Len(),
		"dead by id":        s.morgue.byID.Len(),
		"dead by group":     len(s.morgue.byGroup),
		"groups":            s.morgue.groups.Len(),
	}
}

// holder holds the lease of the one shard of a queue.
type holder struct {
	t      *testing.T
	store  *Store
	shard  *shard
	lease  ports.Lease
	number int64
}

func newHolder(t *testing.T) *holder {
	h := &holder{t: t, store: New(Options{})}
	_, err := h.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1, IndexIDs: true})
	h.ok(err)
	id := core.Shard{Queue: "orders"}
	h.shard, err = h.store.b.shard(t.Context(), id)
	h.ok(err)
	got, err := h.store.Acquire(t.Context(), ports.AcquireRequest{
		Shard: id, Shards: 1, Generation: 1, Owner: "holder", Attempt: 1, TTL: time.Hour,
	})
	h.ok(err)
	h.lease = ports.Lease{Shard: id, Owner: "holder", Token: got.Token}
	return h
}

func (h *holder) ok(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

// pushed are the ids that push pushes.
func pushed() []string {
	ids := make([]string, ports.MaxStep)
	for i := range ids {
		ids[i] = fmt.Sprintf("order-%d", i)
	}
	return ids
}

func (h *holder) push(payloads ...string) {
	h.t.Helper()
	var entries []core.Entry
	for _, id := range pushed() {
		for _, data := range payloads {
			entries = append(entries, core.Entry{ID: id, Payload: core.Payload{Data: []byte(data)}})
		}
	}
	_, err := h.store.Push(h.t.Context(), ports.PushRequest{
		Queue: "orders", Shards: 1, Generation: 1, Entries: entries,
	})
	h.ok(err)
}

// work claims until nothing is due, and settles each job like how.
func (h *holder) work(how core.Settlement) {
	h.t.Helper()
	var settlements []core.Settlement
	for {
		h.number++
		reply, err := h.store.Turn(h.t.Context(), ports.TurnRequest{
			Lease: h.lease, Number: h.number, TTL: time.Hour, Settlements: settlements, Want: 100,
		})
		h.ok(err)
		if h.number = reply.Last; len(reply.Claims) == 0 {
			return
		}

		settlements = settlements[:0]
		for _, claim := range reply.Claims {
			how.ID, how.Receipt = claim.ID, claim.Receipt
			settlements = append(settlements, how)
		}
	}
}

func TestASettledJobLeavesNothing(t *testing.T) {
	all := ports.DeadLetterStep{Shard: core.Shard{Queue: "orders"}, Before: core.MaxInstant}
	later := core.Settlement{Rest: core.Requeue, PutBack: core.PutBack{Delay: time.Hour, RetryCount: 1, Recoveries: 1}}
	bury := core.Settlement{Rest: core.Bury, Letter: core.DeadLetter{Failures: core.Failures{{Text: "broken"}}}}
	tests := []struct {
		name string
		do   func(h *holder)
	}{
		{"done", func(h *holder) { h.push("a"); h.work(core.Settlement{}) }},
		{"done in parts", func(h *holder) {
			h.push("a", "b", "h")
			h.work(core.Settlement{Rest: core.Requeue, Except: []core.PayloadDisposition{{Position: 0}}})
		}},
		{"deleted after a failure", func(h *holder) {
			h.push("a")
			h.work(later)
			_, err := h.store.Delete(h.t.Context(), ports.JobStep{Shard: all.Shard, IDs: pushed()})
			h.ok(err)
		}},
		{"buried and purged", func(h *holder) {
			h.push("a", "b")
			h.work(bury)
			_, err := h.store.Purge(h.t.Context(), all)
			h.ok(err)
		}},
		{"buried, revived and done", func(h *holder) {
			h.push("a", "b")
			h.work(bury)
			_, err := h.store.Revive(h.t.Context(), all)
			h.ok(err)
			h.work(core.Settlement{})
		}},
		{"failed, expedited, claimed alone and done", func(h *holder) {
			h.push("a")
			h.work(later)
			_, err := h.store.Expedite(h.t.Context(), ports.JobStep{Shard: all.Shard, IDs: pushed()})
			h.ok(err)
			h.work(core.Settlement{})
		}},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHolder(t)
			nothing := h.shard.sizes()
			tt.do(h)
			if diff := cmp.Diff(nothing, h.shard.sizes()); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}

			for free := h.shard.claimed.free; free != nil; free = free.next {
				if diff := cmp.Diff(core.Claim{}, free.Claim); diff != "" || free.by != nil {
					t.Fatalf("a settled claim is kept alive by the free list:\n%s", diff)
				}
			}
		})
	}
}

// The map of ids does not stay large once its shard is empty.
func TestAnEmptiedShardDropsItsLargeMap(t *testing.T) {
	for _, jobs := range []int{1, maxReusedIDs, maxReusedIDs + 1} {
		t.Run(fmt.Sprintf("after %d jobs", jobs), func(t *testing.T) {
			h := newHolder(t)
			for i := range jobs {
				h.shard.push(&core.Entry{ID: fmt.Sprint(i)}, &ports.PushRequest{}, new(ports.PushReply))
			}
			h.work(core.Settlement{})
			if kept, want := h.shard.peak > 0, jobs <= maxReusedIDs; kept != want || len(h.shard.ids) != 0 {
				t.Errorf("the map is kept: %t with %d ids, want %t with none", kept, len(h.shard.ids), want)
			}
		})
	}
}
