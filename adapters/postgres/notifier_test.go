package postgres

import (
	"slices"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// A shard into which a transaction has pushed is looked at after pauses that double, until 2.5 s
// after the push, whatever was found and pushed outside of transactions in between.
func TestLooksForATransactionAreRepeated(t *testing.T) {
	shard, begin := core.Shard{Queue: "orders"}, time.Unix(1, 0)
	for name, plain := range map[string]time.Duration{
		"alone":                          0,
		"beside plain pushes":            300 * time.Millisecond,
		"beside plain pushes to the end": time.Minute,
	} {
		t.Run(name, func(t *testing.T) {
			var n notifier
			now, looks := begin, []time.Duration{}
			n.await(shard, 7, now)
			for range 10_000 {
				if now.Sub(begin) < min(plain, 4*time.Second) {
					n.add(shard, 9)
				}

				batch, wait, more := n.take(now)
				if !more {
					break
				}
				if len(batch.shards) > 0 && batch.dues[0] == 7 {
					looks = append(looks, now.Sub(begin))
				}
				if len(batch.shards) > 0 {
					now = now.Add(restTime / 20) // the statement takes a while
					continue
				}
				now = now.Add(max(wait, restTime/20))
			}

			if len(looks) != 7 || looks[0] > 2*restTime ||
				looks[6] < 2500*time.Millisecond || looks[6] > 3*time.Second {
				t.Errorf("looks at %v; want 7, the first after %v and the last after 2.5 s", looks, restTime)
			}
			if !slices.IsSorted(looks) || n.running {
				t.Errorf("it goes on after %v", looks)
			}
		})
	}
}

// Later pushes do not delay the look at a shard, and it is for the earliest due job of them all.
func TestALookForATransactionIsNotPutOff(t *testing.T) {
	shard, begin := core.Shard{Queue: "orders"}, time.Unix(1, 0)
	var n notifier
	for at, due := range []core.Instant{7, 5, 9} {
		n.await(shard, due, begin.Add(time.Duration(at)*restTime/4))
	}
	if batch, _, _ := n.take(begin.Add(restTime)); !slices.Equal(batch.dues, []int64{5}) {
		t.Errorf("%v after the first push, looks are for %v, want 5", restTime, batch.dues)
	}
	n.await(shard, 9, begin.Add(2*restTime))
	n.add(shard, 3)
	if batch, _, _ := n.take(begin.Add(3 * restTime)); !slices.Equal(batch.dues, []int64{3}) {
		t.Errorf("beside a push outside of transactions, looks are for %v, want 3", batch.dues)
	}
}
