package pages

import (
	"context"

	"github.com/skeinq/skein"
)

type Event struct{ Number int }

var Orders = skein.NewQueue("orders", skein.QueueOptions[Event]{})

var (
	indexAll    func(ctx context.Context, batch *skein.Batch[Event]) error
	bulkHandler skein.Handler
)
