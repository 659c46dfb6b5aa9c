package pages

import (
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

var newBackend func(t testing.TB, clock func() time.Time) interface{ open() ports.ShardStore }
