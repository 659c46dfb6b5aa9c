package pages

import (
	"context"

	"github.com/skeinq/skein"
)

type Event struct{ Number int }

var (
	indexAll    func(ctx context.Context, batch *skein.Batch[Event]) error
	bulkHandler skein.Handler
)
