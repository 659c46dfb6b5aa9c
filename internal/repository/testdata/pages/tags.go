package pages

import "github.com/skeinq/skein"

type Event struct{ Number int }

var Orders = skein.NewQueue("orders", skein.QueueOptions[Event]{})
