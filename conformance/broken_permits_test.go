package conformance

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// changesPermits changes each call for permits before the store has it.
func changesPermits(change func(r *ports.PermitRequest)) func(full) full {
	return func(s full) full {
		return replace(s, "Permit", func(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
			change(&r)
			return s.Permit(ctx, r)
		})
	}
}

var (
	// exceedsPermits gives one permit more than there are.
	exceedsPermits = changesPermits(func(r *ports.PermitRequest) { r.Limit++ })
	// keepsPermits holds them for twice the TTL.
	keepsPermits = changesPermits(func(r *ports.PermitRequest) { r.TTL *= 2 })
	// mixesPermits counts all queues as one.
	mixesPermits = changesPermits(func(r *ports.PermitRequest) { r.Queue = orders })
)

// takesLatePermits takes each call for a new one.
func takesLatePermits(s full) full {
	var attempts int64
	return changesPermits(func(r *ports.PermitRequest) { attempts++; r.Attempt = attempts })(s)
}

// stripsPermits takes permits from an owner that uses a smaller limit.
func stripsPermits(s full) full {
	return changesPermits(func(r *ports.PermitRequest) { r.Hold = min(r.Hold, r.Limit); r.Want = max(r.Hold, r.Want) })(s)
}

// freesPermitsSilently wakes no node: no call reports that it wants more than it holds.
var freesPermitsSilently = changesPermits(func(r *ports.PermitRequest) { r.Want = r.Hold })

// forgetsWanting lists only those who hold permits.
func forgetsWanting(s full) full {
	return replace(s, "Permit", func(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
		reply, err := s.Permit(ctx, r)
		var holding []core.PermitHolder
		for _, h := range reply.Holders {
			if h.Held > 0 {
				holding = append(holding, h)
			}
		}
		reply.Holders = holding
		return reply, err
	})
}
