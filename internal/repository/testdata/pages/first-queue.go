package pages

import (
	"context"

	"github.com/skeinq/skein"
)

type Event struct {
	Number int
	What   string
}

var Orders *skein.Queue[Event]

var redisAddress string

var ledger interface {
	Book(ctx context.Context, id string, e Event) error
}
