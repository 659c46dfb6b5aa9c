package conformance

import (
	"context"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// Factory makes an empty backend whose stores read the given clock for all time,
// and returns open, which opens a handle on it. Each handle is a store of its own,
// as another process would have it; all share the backend's data. Clean-up goes to
// t.Cleanup. A Factory may be called while earlier backends are in use, also by
// parallel tests.
type Factory func(t testing.TB, clock func() time.Time) (open func() ports.ShardStore)

// Transactor is a store that pushes and settles in its callers' transactions. It is
// optional: if the stores of a [Factory] implement it, the suite also checks
// transactions and direct calls beside each other.
type Transactor interface {
	// Begin opens a transaction. Others see what it does once it has committed.
	Begin(ctx context.Context) (Transaction, error)
}

// Severer is a store from which single shards can be cut off, as by an outage of the
// part that has them. It is optional: if the stores of a [Factory] implement it, the
// suite also checks what becomes of the other shards.
type Severer interface {
	// Sever makes every call that concerns the shard fail, for this handle at least,
	// until mend is called. Other shards are as before.
	Sever(shard core.Shard) (mend func())
}

// Damager is a store whose records can be damaged, as by a fault of its server or by another
// program. It is optional: if the stores of a [Factory] implement it, the suite also checks
// that a damaged record is set aside.
type Damager interface {
	// Damage makes what is stored of an id in a place unreadable. It is there.
	Damage(ctx context.Context, shard core.Shard, id string, place ports.Place) error
}

// Transaction is a caller's transaction. It is used by one goroutine.
type Transaction interface {
	ports.Producer
	ports.Settler
	// Commit ends the transaction. Nothing takes effect before.
	Commit(ctx context.Context) error
}
