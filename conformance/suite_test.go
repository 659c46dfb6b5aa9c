package conformance

import (
	"testing"
	"time"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

func memoryStore(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	backend := memory.New(memory.Options{Clock: clock})
	return func() ports.ShardStore { return backend.Open() }
}

func TestMemory(t *testing.T) { Run(t, memoryStore) }
