package pages

import "context"

var ledger interface {
	Book(ctx context.Context, id string, e Event) error
}
