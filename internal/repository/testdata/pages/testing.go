package pages

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein"
)

var (
	t       *testing.T
	Mails   *skein.Queue[string]
	Parcels *skein.Queue[int]
	Reports *skein.Queue[string]
	berlin  *time.Location
)

func report(context.Context, string, []string) error { return nil }
