package redis

import (
	"context"
	"strings"

	"github.com/skeinq/skein/adapters/redis/internal/exchange"
	"github.com/skeinq/skein/adapters/redis/internal/record"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// claimsCursor is how far the claims of a shard have been read, in order of id.
type claimsCursor struct {
	shard core.Shard
	after string
}

// Claimed implements [ports.Inspector]. Redis keeps claimed jobs in no order, so each page reads
// all claimed jobs of the requested shards.
func (s *Store) Claimed(ctx context.Context, r ports.PageRequest) (ports.ClaimedPage, error) {
	_, shards, err := s.listed(ctx, r.Queue, r.Shards, r.Validate())
	if err != nil {
		return ports.ClaimedPage{}, err
	}

	p := storekit.NewPager[ports.ClaimView](r, false)
	var lost storekit.Lost
	open, err := s.withClaims(ctx, shards, &lost)
	for err == nil && len(open) > 0 {
		open, err = s.readClaims(ctx, p, &r, open, &lost)
	}
	if err != nil {
		return ports.ClaimedPage{}, err
	}

	var page ports.ClaimedPage
	page.Claims, page.Next = p.Page()
	for i := range page.Claims {
		page.Claims[i].Count = r.Counted(page.Claims[i].Count)
	}
	page.Unreached, err = lost.Shards(len(shards))
	return page, err
}

// withClaims returns the shards that have claims.
func (s *Store) withClaims(ctx context.Context, shards []core.Shard, lost *storekit.Lost) ([]claimsCursor, error) {
	some, err := s.having(ctx, "hlen", keyClaims, shards, lost)
	open := make([]claimsCursor, len(some))
	for i, shard := range some {
		open[i].shard = shard
	}
	return open, err
}

// readClaims adds claims of the shards to a page, and returns the shards that have more.
func (s *Store) readClaims(
	ctx context.Context,
	p *storekit.Pager[ports.ClaimView],
	r *ports.PageRequest,
	open []claimsCursor,
	lost *storekit.Lost,
) (more []claimsCursor, err error) {
	calls, shards := make([]exchange.Call, len(open)), make([]core.Shard, len(open))
	for i, c := range open {
		shards[i] = c.shard
		keys := s.someKeys(c.shard, keyMeta, keyClaims, keyCancels, keyLease)
		calls[i] = exchange.Call{
			Script: claimedScript,
			Keys:   keys,
			Args:   []any{s.now(), c.after, max(0, r.Payloads), r.ErrorBytes},
		}
	}

	by := exchange.Apart{Most: pageScripts, Patience: lookPatience}
	err = s.eachReached(ctx, by, shards, calls, lost, func(i int, o *exchange.Outcome) error {
		last, others, err := addClaims(o, p, shards[i])
		if err == nil && others {
			more = append(more, claimsCursor{shards[i], last})
		}
		return err
	})
	return more, err
}

// addClaims adds to a page those claims of a shard that a script has listed. It returns the last
// id, and reports whether there are more claims.
func addClaims(
	o *exchange.Outcome,
	p *storekit.Pager[ports.ClaimView],
	shard core.Shard,
) (last string, more bool, err error) {
	r := record.ReplyOf(o.Value)
	more = r.Int() == 1
	claims, cancels := r.List(), r.List()
	lease := parseLease(&r)

	cancelled := make(map[string]string)
	for cancels.More() {
		id := cancels.Text()
		cancelled[id] = cancels.Text()
	}

	for claims.More() {
		id, count := claims.Text(), claims.Int()
		v, err := record.ParseClaim(id, claims.Text())
		if err != nil {
			return "", false, err
		}
		last, v.Count = id, int(count)
		if at := (ports.Cursor{Key: int64(v.Since), ID: id}); p.Wants(at) {
			v.Shard = shard
			v.Cancelled, v.Drop = parseCancel(cancelled[id])
			lease.mark(&v)
			p.Add(at, v)
		}
	}

	r.Join(&claims, &cancels)
	return last, more && last != "", r.Err()
}

// currentLease is the valid lease of a shard, or zero if it has none.
type currentLease struct {
	token int64
	ends  core.Instant
}

func parseLease(r *record.Reply) currentLease {
	return currentLease{r.Int(), core.Instant(r.Int())}
}

// mark sets whether the lease of a claim has ended, and when it ends if it has not.
func (l currentLease) mark(v *ports.ClaimView) {
	if v.LeaseOver = v.Receipt.Token != l.token; !v.LeaseOver {
		v.LeaseUntil = l.ends
	}
}

// parseCancel reads a stored cancel, receipt and drop. "" means that the claim has no cancel.
func parseCancel(stored string) (cancelled, drop bool) {
	return stored != "", strings.HasSuffix(stored, "1")
}
