package memory

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// sizes is all that a shard keeps, by what it is kept in.
func (s *shard) sizes() map[string]int {
	return map[string]int{
		"ids":              len(s.ids),
		"ready":            s.ready.Len(),
		"parked":           s.parked.Len(),
		"by id":            s.byID.Len(),
		"retries by time":  s.retries.byTime.Len(),
		"retries by id":    s.retries.byID.Len(),
		"retries by count": s.retries.byCount.Len(),
		"claimed":          s.claimed.size,
		"alone":            s.claimed.alone,
		"cancelled":        s.claimed.cancelled,
		"dead":             len(s.morgue.entries),
		"dead by time":     s.morgue.byTime.Len(),
		"dead by id":       s.morgue.byID.Len(),
	}
}

// crew works the one shard of a queue.
type crew struct {
	t      *testing.T
	store  *Store
	shard  *shard
	lease  ports.Lease
	number int64
}

func newCrew(t *testing.T) *crew {
	c := &crew{t: t, store: New(Options{})}
	_, err := c.store.Declare(t.Context(), ports.DeclareRequest{Queue: "orders", Shards: 1, IndexIDs: true})
	c.ok(err)
	id := core.Shard{Queue: "orders"}
	c.shard, err = c.store.b.shard(t.Context(), id)
	c.ok(err)
	got, err := c.store.Acquire(t.Context(), ports.AcquireRequest{
		Shard: id, Shards: 1, Generation: 1, Owner: "crew", Attempt: 1, TTL: time.Hour,
	})
	c.ok(err)
	c.lease = ports.Lease{Shard: id, Owner: "crew", Token: got.Token}
	return c
}

func (c *crew) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

func (c *crew) push(payloads ...string) {
	c.t.Helper()
	var entries []core.Entry
	for i := range ports.MaxStep {
		for _, data := range payloads {
			entries = append(entries, core.Entry{ID: fmt.Sprintf("order-%d", i), Payload: core.Payload{Data: []byte(data)}})
		}
	}
	_, err := c.store.Push(c.t.Context(), ports.PushRequest{Queue: "orders", Shards: 1, Generation: 1, Entries: entries})
	c.ok(err)
}

// work claims until nothing is due, settling each job as it is told.
func (c *crew) work(how core.Settlement) {
	c.t.Helper()
	var settle []core.Settlement
	for {
		c.number++
		reply, err := c.store.Turn(c.t.Context(), ports.TurnRequest{
			Lease: c.lease, Number: c.number, TTL: time.Hour, Settlements: settle, Want: 100,
		})
		c.ok(err)
		if c.number = reply.Last; len(reply.Claims) == 0 {
			return
		}
		settle = settle[:0]
		for _, claim := range reply.Claims {
			how.ID, how.Receipt = claim.ID, claim.Receipt
			settle = append(settle, how)
		}
	}
}

func TestASettledJobLeavesNothing(t *testing.T) {
	all := ports.DeadLetterStep{Shard: core.Shard{Queue: "orders"}, Before: core.MaxInstant}
	later := core.Settlement{Rest: core.Requeue, PutBack: core.PutBack{Delay: time.Hour, RetryCount: 1, Recoveries: 1}}
	bury := core.Settlement{Rest: core.Bury, BuryError: "broken"}
	tests := []struct {
		name string
		do   func(c *crew)
	}{
		{"done", func(c *crew) { c.push("a"); c.work(core.Settlement{}) }},
		{"done in parts", func(c *crew) {
			c.push("a", "b", "c")
			c.work(core.Settlement{Rest: core.Requeue, Except: []core.PayloadDisposition{{Position: 0}}})
		}},
		{"deleted after a failure", func(c *crew) {
			c.push("a")
			c.work(later)
			_, err := c.store.Delete(c.t.Context(), ports.JobStep{Shard: all.Shard})
			c.ok(err)
		}},
		{"buried and purged", func(c *crew) {
			c.push("a", "b")
			c.work(bury)
			_, err := c.store.Purge(c.t.Context(), all)
			c.ok(err)
		}},
		{"buried, revived and done", func(c *crew) {
			c.push("a", "b")
			c.work(bury)
			_, err := c.store.Revive(c.t.Context(), all)
			c.ok(err)
			c.work(core.Settlement{})
		}},
		{"failed, expedited, claimed alone and done", func(c *crew) {
			c.push("a")
			c.work(later)
			_, err := c.store.Expedite(c.t.Context(), ports.JobStep{Shard: all.Shard})
			c.ok(err)
			c.work(core.Settlement{})
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := newCrew(t)
			nothing := c.shard.sizes()
			tt.do(c)
			if diff := cmp.Diff(nothing, c.shard.sizes()); diff != "" {
				t.Errorf("left behind (-before +after):\n%s", diff)
			}
			for free := c.shard.claimed.free; free != nil; free = free.next {
				if diff := cmp.Diff(core.Claim{}, free.Claim); diff != "" || free.by != nil {
					t.Fatalf("a settled claim is kept alive by the free list:\n%s", diff)
				}
			}
		})
	}
}

// A map that was large does not stay so when its shard has emptied.
func TestAnEmptiedShardGivesItsMapUp(t *testing.T) {
	for _, jobs := range []int{1, keptIDs, keptIDs + 1} {
		t.Run(fmt.Sprintf("after %d jobs", jobs), func(t *testing.T) {
			c := newCrew(t)
			for i := range jobs {
				c.shard.push(&core.Entry{ID: fmt.Sprint(i)}, core.PushRule{}, 0)
			}
			c.work(core.Settlement{})
			if kept, want := c.shard.most > 0, jobs <= keptIDs; kept != want || len(c.shard.ids) != 0 {
				t.Errorf("the map is kept: %t with %d ids, want %t with none", kept, len(c.shard.ids), want)
			}
		})
	}
}

func TestHistoryKeepsADay(t *testing.T) {
	minute := core.Instant(time.Minute / time.Microsecond)
	const start core.Instant = 1_800_000_000_000_000
	var h history
	for i := range core.Instant(3 * 24 * 60) {
		h.add(start+i*minute, &core.Stats{Processed: uint64(i) + 1})
	}
	end := start + (3*24*60-1)*minute
	got := h.between(0, 0)
	if want := 24*60 + 1; len(got) != want {
		t.Fatalf("%d minutes are kept, want %d", len(got), want)
	}
	first := end.Add(-24 * time.Hour).Minute()
	for i, m := range got {
		if want := first + core.Instant(i)*minute; m.At != want || m.Processed == 0 {
			t.Fatalf("minute %d starts at %d with %d jobs, want at %d with some", i, m.At, m.Processed, want)
		}
	}
}

func TestHistoryTakesAClockThatStepsBack(t *testing.T) {
	const now core.Instant = 1_800_000_000_000_000
	var h history
	for _, d := range []time.Duration{0, -2 * time.Hour, -time.Hour, -2 * time.Hour} {
		h.add(now.Add(d), &core.Stats{Failed: 1})
	}
	got := map[core.Instant]uint64{}
	last := core.Instant(-1)
	for _, m := range h.between(0, 0) {
		if m.At <= last {
			t.Errorf("minute %d follows %d", m.At, last)
		}
		got[m.At], last = m.Failed, m.At
	}
	want := map[core.Instant]uint64{
		now.Minute():                     1,
		now.Add(-time.Hour).Minute():     1,
		now.Add(-2 * time.Hour).Minute(): 2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("failures by minute (-want +got):\n%s", diff)
	}
}
