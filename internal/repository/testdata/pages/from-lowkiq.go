package pages

import "context"

type OrderEvent struct{ Number int }

var apply func(ctx context.Context, id string, e OrderEvent) error
