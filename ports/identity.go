package ports

import (
	"context"
	"fmt"
)

// MaxStoreID is the maximum number of bytes of the id of a store.
const MaxStoreID = 64

// Identity is the id of a store. Callers compare ids to find out whether two handles have the same
// data, for example before a queue is moved to a queue of the same name.
type Identity interface {
	// StoreID returns the id of the store. It is the same for all handles and processes. The store
	// draws it at random when it is created, at the latest by the first Declare. Concurrent calls
	// that create the store agree on one id. The id changes only by SetStoreID, and while the store
	// has no queue. It is empty if the store has none yet.
	//
	// The id is stored beside the data, so a copy of the data, such as a restored dump, has the
	// same id. A store that has lost its data gets another one. StoreID writes nothing.
	StoreID(ctx context.Context) (string, error)

	// SetStoreID replaces the id of the store, for a store whose data was copied from another one.
	// A repeated call changes nothing more.
	//
	// Errors, with nothing changed: ErrInvalidRequest, as [ValidateStoreID] returns it.
	SetStoreID(ctx context.Context, id string) error
}

// ValidateStoreID returns [ErrInvalidRequest] for an id of a store that is empty, is longer than
// [MaxStoreID] bytes, or is not a [core.Text].
func ValidateStoreID(id string) error {
	if id == "" || len(id) > MaxStoreID {
		return fmt.Errorf("%w: the id of the store has %d bytes; give 1 to %d", ErrInvalidRequest, len(id), MaxStoreID)
	}
	return validateTexts("the id of the store", id)
}
