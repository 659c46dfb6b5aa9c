package pages

import (
	"context"

	"github.com/skeinq/skein"
)

type Order struct{ Paid bool }

type Invoice struct{ Number int }

func book(ctx context.Context, id string, changes []Order) (Invoice, error) { return Invoice{}, nil }

var (
	order  Order
	orders *skein.Queue[Order]
)
