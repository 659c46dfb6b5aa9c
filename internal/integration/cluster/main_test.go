// Package cluster_test has the tests of the Redis store on a Cluster in which a server is down or
// hangs, or a slot moves.
package cluster_test

import (
	"testing"

	"github.com/skeinq/skein/internal/integration/kit"
)

func TestMain(m *testing.M) { kit.Main(m) }

var must = kit.Must
