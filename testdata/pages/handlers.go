package pages

import "github.com/skeinq/skein"

type Event struct {
	Number int
	What   string
}

var Orders *skein.Queue[Event]
