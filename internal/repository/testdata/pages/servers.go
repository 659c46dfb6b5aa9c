package pages

import "github.com/skeinq/skein"

var (
	server *skein.Server
	stop   func()
)
