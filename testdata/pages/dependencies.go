package pages

import "github.com/skeinq/skein"

type Part struct{ Order, Name string }

var (
	Parts   = skein.NewQueue("parts", skein.QueueOptions[Part]{})
	Parents = skein.NewQueue("parents", skein.QueueOptions[string]{PushRule: skein.Earliest()})

	packParts  func(parts []Part) error
	partsOf    func(order string) []string
	childrenOf func(parent string) int
	send       func(order string) error
	finish     func(parent string, children []string) error
)
