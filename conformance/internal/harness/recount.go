package harness

import (
	"context"
	"errors"

	"github.com/skeinq/skein/ports"
)

// maxRecountSteps is how many steps a recount may take of the few entries that a case has: with a
// Limit of 1, some for each entry, and for each of the store's lists.
const maxRecountSteps = 10_000

var errEndless = errors.New("the recount does not end")

// Recount takes all steps of a recount, and returns what they have done together. Counted is left
// out, since a store may count an entry twice.
func Recount(s ports.ShardStore, ctx context.Context, r ports.RecountRequest) (ports.RecountReply, error) {
	sum, err := RecountAround(s, ctx, r, func() {})
	sum.Counted = 0
	return sum, err
}

// RecountAround is Recount, but calls between after each step that is not the last, and returns
// Counted.
func RecountAround(s ports.ShardStore, ctx context.Context, r ports.RecountRequest, between func()) (ports.RecountReply, error) {
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
