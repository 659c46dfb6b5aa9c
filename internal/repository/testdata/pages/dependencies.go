package pages

import (
	"context"

	"github.com/skeinq/skein"
)

type Event struct {
	Number int
	What   string
}

type Part struct{ Order, Name string }

var (
	Parts   = skein.NewQueue("parts", skein.QueueOptions[Part]{})
	Parents = skein.NewQueue("parents", skein.QueueOptions[string]{PushRule: skein.Earliest()})

	Orders   *skein.Queue[Event]
	Mails    *skein.Queue[string]
	apply    func(ctx context.Context, id string, e Event) error
	applyAll func(ctx context.Context, id string, events []Event) error

	packParts  func(parts []Part) error
	partsOf    func(order string) []string
	childrenOf func(parent string) int
	send       func(order string) error
	finished   func(parent string) bool
	finish     func(parent string, children []string) error
)
