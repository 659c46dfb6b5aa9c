package testservers_test

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

// TestMain silences the client's log, which is full of the connections that
// these tests cut.
func TestMain(m *testing.M) {
	logging.Disable()
	os.Exit(m.Run())
}
