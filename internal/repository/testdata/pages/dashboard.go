package pages

import (
	"net/http"

	"github.com/skeinq/skein/adapters/dashboard"
)

var (
	production, billing *dashboard.Dashboard
	server              *http.Server
)
