package pages

import (
	"testing"

	"github.com/skeinq/skein"
)

var (
	t       *testing.T
	Mails   *skein.Queue[string]
	Parcels *skein.Queue[int]
)
