package integration_test

import (
	"testing"
	"time"

	"github.com/skeinq/skein/conformance"
	"github.com/skeinq/skein/internal/integration/testservers"
)

// The suite passes while a random connection is ended ten times a second.
func TestPostgresCutConformance(t *testing.T) {
	t.Parallel()
	pool := testservers.OwnPostgres(t, "fsync=off")
	testservers.ChaosPostgres(t, pool, 100*time.Millisecond)
	conformance.RunDisturbed(t, newSchemas(t, pool).factory)
}
