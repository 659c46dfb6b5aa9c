package ports_test

import (
	"testing"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

func TestOrphansAreTheClaimedJobsOfShardsWhoseLeaseIsOver(t *testing.T) {
	const now = core.Instant(100)
	for name, c := range map[string]struct {
		owner   string
		expires core.Instant
		want    int64
	}{
		"lasts":                     {"n1", now + 1, 0},
		"ends now":                  {"n1", now, 3},
		"has run out":               {"n1", now - 1, 3},
		"was released":              {"", 0, 3},
		"was released and is shown": {"", now + 1, 3},
	} {
		t.Run(name, func(t *testing.T) {
			shard := ports.ShardStats{Owner: c.owner, ExpiresAt: c.expires}
			shard.Claimed = 3
			if got := shard.Orphaned(now); got != c.want {
				t.Errorf("%d orphans in the shard, want %d", got, c.want)
			}

			lasting := ports.ShardStats{Owner: "n2", ExpiresAt: now + 1}
			lasting.Claimed = 5
			q := ports.QueueStats{Now: now, Shards: []ports.ShardStats{lasting, shard, shard}}
			if got := q.Orphaned(); got != 2*c.want {
				t.Errorf("%d orphans in the queue, want %d", got, 2*c.want)
			}
		})
	}
}
