package pages

import "github.com/skeinq/skein"

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
