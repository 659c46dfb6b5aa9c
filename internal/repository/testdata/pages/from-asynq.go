package pages

import "context"

type OrderEvent struct {
	OrderID string
	Number  int
}

var (
	event               OrderEvent
	apply, lockAndApply func(ctx context.Context, id string, e OrderEvent) error
)
