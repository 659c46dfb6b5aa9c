// Package redis_test has the tests of the store on Redis, Valkey, Sentinel and Cluster. Those in
// which a server of a Cluster fails are in the room cluster.
package redis_test

import (
	"testing"

	"github.com/skeinq/skein/internal/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

var must = kit.Must
