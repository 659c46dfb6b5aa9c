package harness

import (
	"context"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// renewals is the number of times that Renew calls a store again that could not read the head, and
// renewalPause the wait before each of them.
const (
	renewals     = 200
	renewalPause = 5 * time.Millisecond
)

// Renew renews until the store has read the head. A store that can't read it at the moment replies
// that a job is due now and that the queue is not paused (ports.RenewReply), where Heads replies
// something else.
func Renew(s ports.ShardStore, ctx context.Context, r ports.RenewRequest) (ports.RenewReply, error) {
	reply, err := s.Renew(ctx, r)
	for range renewals {
		if err != nil || !reply.Head.OK || reply.Head.Due != reply.Now {
			break
		}

		heads, headsErr := s.Heads(ctx, []core.Shard{r.Lease.Shard})
		if headsErr != nil || heads.Heads[0] == reply.Head {
			break
		}

		time.Sleep(renewalPause)
		reply, err = s.Renew(ctx, r)
	}
	return reply, err
}
