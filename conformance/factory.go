package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/conformance/internal/env"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Factory makes an empty backend and returns open, which opens a handle on it. The backend's stores
// read only the given clock. Each handle is a store of its own, as another process would have it;
// all handles share the backend's data. The Factory cleans up with t.Cleanup. It must be safe for
// concurrent use: parallel tests call it, also while earlier backends are in use.
type Factory func(t testing.TB, clock func() time.Time) (open func() ports.ShardStore)

// Transactor is a store that pushes and settles in its callers' transactions. It is optional: if
// the stores of a [Factory] implement it, the suite also tests transactions together with direct
// calls.
type Transactor interface {
	// Begin opens a transaction. Other callers see its changes after the commit.
	Begin(ctx context.Context) (Transaction, error)
}

// Severer is a store that can cut off single shards, as an outage of a part of the store does. It
// is optional: if the stores of a [Factory] implement it, the suite also tests the other shards
// during such an outage.
type Severer interface {
	// Sever makes every call about the shard fail, at least for this handle, until mend is called.
	// Other shards are not affected.
	Sever(shard core.Shard) (mend func())
}

// Damager is a store that can damage records, as a fault of its server or another program does. It
// is optional: if the stores of a [Factory] implement it, the suite also tests that a damaged
// record is set aside.
type Damager interface {
	// Damage makes the record of an id in a place unreadable. The record exists.
	Damage(ctx context.Context, shard core.Shard, id string, place ports.Place) error
}

// Transaction is a caller's transaction. It is used by one goroutine.
type Transaction = interface {
	ports.Producer
	ports.Settler
	// Commit ends the transaction. No change takes effect before.
	Commit(ctx context.Context) error
}

// The rooms beneath this package find the optional interfaces by their copies in env.
var (
	_ interface {
		env.Transactor
		env.Severer
		env.Damager
	} = interface {
		Transactor
		Severer
		Damager
	}(nil)
)
