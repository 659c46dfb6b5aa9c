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

type Switch struct {
	On      bool
	Version int64
}

var Switches *skein.Queue[Switch]

func charge(ctx context.Context, id string, events []Event) error { return nil }
