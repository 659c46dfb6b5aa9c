package pages

import "github.com/skeinq/skein/adapters/dashboard"

var production, billing *dashboard.Dashboard
