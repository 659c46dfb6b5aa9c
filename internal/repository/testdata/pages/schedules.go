package pages

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein"
)

// Report, Refresh, Close and Hour are payloads of the page about schedules.
type (
	Report  struct{ Days int }
	Refresh struct{}
	Close   struct{}
	Hour    struct{}
)

var (
	Reports  *skein.Queue[Report]
	Caches   *skein.Queue[Refresh]
	Invoices *skein.Queue[Close]

	tenant         struct{ ID, Zone string }
	customer, zone string
	location       *time.Location
	handlers       []skein.Handler
	schedules      skein.ScheduleSet
	t              *testing.T
)

func closeMonth(context.Context, string) error { return nil }

func sum(context.Context, time.Time) error { return nil }
