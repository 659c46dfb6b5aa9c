package pages

import "context"

var ledger interface {
	Book(ctx context.Context, id string, e Event) error
}

var (
	event Event
	index func(ctx context.Context, id string, events []Event) error
)
