package postgres

import (
	"context"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

const permitSQL = `SELECT status, coalesce(now, 0), coalesce(remaining, 0), coalesce(held, 0), coalesce(freed, false),
  owners, holds, wants
FROM {schema}.permit(p_queue => $1, p_owner => $2, p_attempt => $3, p_limit => $4,
  p_hold => $5, p_want => $6, p_ttl => $7, p_now => $8)`

// Permit implements [ports.Permitter]. The wake-up is sent outside of the transaction.
func (s *Store) Permit(ctx context.Context, r ports.PermitRequest) (ports.PermitReply, error) {
	if err := r.Validate(); err != nil {
		return ports.PermitReply{}, err
	}

	var (
		st           status
		reply        ports.PermitReply
		remaining    int64
		freed        bool
		owners       []string
		holds, wants []int
	)

	err := s.queryOne(ctx, idempotent,
		[]any{&st, &reply.Now, &remaining, &reply.Held, &freed, &owners, &holds, &wants},
		permitSQL, textOrNone(r.Queue), r.Owner, r.Attempt, r.Limit, r.Hold, r.Want, r.TTL.Microseconds(), s.now())
	switch {
	case err != nil:
	case st == statusStaleAttempt:
		err = storekit.StalePermit(&r)
	default:
		err = st.err(ports.PermitsOf(r.Queue))
	}
	if err != nil {
		return ports.PermitReply{}, err
	}

	if freed {
		s.wake(ports.PermitsOf(r.Queue), wakeAlways)
	}
	reply.Remaining = micros(remaining)
	for i, owner := range owners {
		reply.Holders = append(reply.Holders, core.PermitHolder{Owner: owner, Held: holds[i], Want: wants[i]})
	}
	return reply, nil
}
