package pages

import (
	"testing"

	"github.com/skeinq/skein"
)

var (
	t      *testing.T
	Orders *skein.Queue[Order]
)
