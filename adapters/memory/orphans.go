package memory

import (
	"github.com/skeinq/skein/core"
)

// orphans are the jobs that earlier leases had left claimed when this one began, in order of id.
// Their receipts have another number once a payload was settled by itself. Those before next were
// handed over. Those from turned on were handed over by its last turn or after it.
type orphans struct {
	refs         []core.ClaimRef
	turned, next int
}

// orphansFor returns the jobs that were claimed under another token.
func (l *claimList) orphansFor(token int64) orphans {
	var o orphans
	for c := l.first; c != nil; c = c.next {
		if c.Receipt.Token != token {
			o.refs = append(o.refs, c.Ref())
		}
	}
	sortByID(o.refs, func(r core.ClaimRef) string { return r.ID })
	return o
}

// handOver returns the next orphans that are still claimed, up to a bound.
func (s *shard) handOver(bound *core.Bound) []core.Claim {
	o := &s.lease.orphans
	claims, n := s.orphansAmong(o.refs[o.next:], bound)
	o.next += n
	return claims
}

// orphansAmong returns the orphans among refs that are still claimed, up to a bound, and how many
// of refs it has visited. Those that it returns are handed over.
func (s *shard) orphansAmong(refs []core.ClaimRef, bound *core.Bound) (claims []core.Claim, n int) {
	for i, ref := range refs {
		e := s.ids[ref.ID]
		if e == nil || e.claim == nil || e.claim.Receipt.Token != ref.Receipt.Token {
			continue
		}
		if !bound.TakeWhole(e.claim.Payloads) {
			return claims, i
		}
		e.claim.handed = true
		claims = append(claims, e.claim.Claim)
	}
	return claims, len(refs)
}

// left reports whether orphans are still to be handed over. Orphans that were settled meanwhile
// count until a turn has skipped them.
func (o *orphans) left() bool { return o.next < len(o.refs) }
