package harness

import (
	"context"
	"errors"

	"github.com/skeinq/skein/ports"
)

// maxRecountSteps is the maximum number of steps of a recount in a case, which has few entries.
// With a Limit of 1, a store may need several steps for each entry and for each of its lists.
const maxRecountSteps = 10_000

var errEndless = errors.New("the recount does not end")

// Recount makes all steps of a recount, and returns their sum. It leaves out Counted, because a
// store may count an entry twice.
func Recount(s ports.ShardStore, ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	sum, err := RecountAround(s, ctx, r, func() {})
	sum.Counted = 0
	return sum, err
}

// RecountAround is like Recount, but also returns Counted. It calls between after each step except
// the last.
func RecountAround(
	s ports.ShardStore,
	ctx context.Context,
	r ports.RecountRequest,
	between func(),
) (ports.RecountReply, error) {
	sum, err := s.Recount(ctx, r)
	for range maxRecountSteps {
		if err != nil || sum.Next == "" {
			return sum, err
		}

		between()
		r.After = sum.Next
		var reply ports.RecountReply
		if reply, err = s.Recount(ctx, r); err == nil {
			sum = sum.Then(reply)
		}
	}

	return sum, errEndless
}
