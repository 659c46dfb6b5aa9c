package pages

import "context"

var (
	event Event
	index func(ctx context.Context, id string, events []Event) error
)
