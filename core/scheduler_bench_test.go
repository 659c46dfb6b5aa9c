package core_test

import (
	"fmt"
	"testing"

	"github.com/skeinq/skein/core"
)

// BenchmarkChoose measures one choice of a pool in which every shard has work: Choose, Ran and the
// shard's next head.
func BenchmarkChoose(b *testing.B) {
	for _, c := range []struct {
		name  string
		build core.SchedulerFunc
	}{
		{"Lag", core.Lag}, {"Seq", core.Seq}, {"Strict", core.StrictBy("B", "A")},
		{"Weighted", core.WeightedBy(map[string]int{"A": 3, "B": 2})},
	} {
		for _, count := range []int{10, 1000, 16384} {
			b.Run(fmt.Sprintf("%s/shards=%d", c.name, count), func(b *testing.B) {
				shards := make([]core.Shard, count)
				for i := range shards {
					shards[i] = core.Shard{Queue: string(rune('A' + i%3)), Index: i / 3}
				}
				s := c.build(core.SchedulerConfig{Shards: shards}).(core.HeadScheduler)
				for i := range shards {
					s.SetHead(i, core.Head{Due: core.Instant(i * 7919 % count), OK: true})
				}
				now := core.Instant(count)
				b.ReportAllocs()
				for b.Loop() {
					chosen := s.Choose(now).Index
					s.Ran(chosen, true)
					now++
					s.SetHead(chosen, core.Head{Due: now, OK: true})
				}
			})
		}
	}
}
