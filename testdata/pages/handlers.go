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

func ship(context.Context, string, []Event) error { return nil }
