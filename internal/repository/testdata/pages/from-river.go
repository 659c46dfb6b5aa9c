package pages

import "context"

type OrderEvent struct{ Number int }

var (
	event OrderEvent
	apply func(ctx context.Context, id string, e OrderEvent) error
)
