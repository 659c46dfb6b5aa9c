package postgres

import (
	"testing"
	"time"

	"github.com/skeinq/skein/core"
)

// A shard into which a transaction has pushed is looked at after pauses that double, whatever was
// found, and as often if pushes outside of transactions come in between.
func TestLooksForATransactionAreRepeated(t *testing.T) {
	shard, begin := core.Shard{Queue: "orders"}, time.Unix(1, 0)
	for name, others := range map[string]bool{"alone": false, "beside plain pushes": true} {
		t.Run(name, func(t *testing.T) {
			var n notifier
			now, looks := begin, []time.Duration{}
			n.add(shard, 7, now, restTime)
			for range 1000 {
				if others && len(looks) > 0 && len(looks) < 5 {
					n.add(shard, 9, now, 0)
				}
				batch, wait, ok := n.take(now)
				if !ok {
					break
				}
				if len(batch.shards) == 0 {
					if wait <= 0 {
						t.Fatalf("waits for %v", wait)
					}
					now = now.Add(wait)
					continue
				}
				if due := batch.dues[0]; due != 7 {
					t.Fatalf("looks for a job that is due at %d, want 7", due)
				}
				looks = append(looks, now.Sub(begin))
				n.sent(batch, []int{0}, now)
				if others {
					now = now.Add(restTime)
				}
			}
			last := looks[len(looks)-1]
			if len(looks) < 7 || len(looks) > 20 || last < 2*time.Second || last > 4*time.Second {
				t.Errorf("looks at %v; want at least 7, until 2.5 s after the push", looks)
			}
			if !others && looks[0] != restTime {
				t.Errorf("looks first after %v, want %v", looks[0], restTime)
			}
		})
	}
}
