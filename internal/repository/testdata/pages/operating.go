package pages

import (
	"net/http"

	"github.com/skeinq/skein/adapters/httpapi"
	"github.com/skeinq/skein/inspect"
)

var (
	timedOut   func(inspect.DeadLetter) bool
	save       func(checkpoint string)
	saved      string
	mayOperate func(*http.Request, httpapi.Action) error
	userOf     func(*http.Request) string
)
