package conformance

import (
	"context"

	"github.com/skeinq/skein/ports"
)

// Transactor is a store that pushes and settles in its callers' transactions. It is an
// extra: a Factory whose stores have it has the suite hold them to what must be true of
// transactions and direct calls beside each other.
type Transactor interface {
	// Begin opens a transaction. Others see what it does once it has committed.
	Begin(ctx context.Context) (Transaction, error)
}

// Transaction is a caller's transaction, which one goroutine uses.
type Transaction interface {
	ports.Producer
	ports.Settler
	// Commit ends the transaction. Until it is called, nothing has happened.
	Commit(ctx context.Context) error
}
