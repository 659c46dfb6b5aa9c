package inspect

import (
	"context"
	"crypto/rand"
	"fmt"
)

// StoreID returns the id of the store. A store draws its id when it is created, at the latest when
// the first queue is declared; before that the id is empty. Inspectors whose ids are equal have the
// same data, or one of the stores is a copy of the other, such as a restored dump. A move between
// two queues of the same name is then refused; see [Inspector.Move].
func (i *Inspector) StoreID(ctx context.Context) (string, error) {
	id, err := ask(i, func(s Store) (string, error) { return s.StoreID(ctx) })
	if err != nil {
		return "", fmt.Errorf("store id: %w", err)
	}
	return id, nil
}

// RenewStoreID draws a new id for the store, and returns it. Call it for one of two stores if its
// data was copied from the other one. Servers and clients need no restart.
func (i *Inspector) RenewStoreID(ctx context.Context) (id string, err error) {
	d := i.begin(ctx, "renew store id", "", nil).start(ctx)
	id = rand.Text()
	_, err = persist(ctx, i, func(s Store) (struct{}, error) { return struct{}{}, s.SetStoreID(ctx, id) })
	d.end(ctx, 0, err)
	if err != nil {
		return "", fmt.Errorf("renew store id: %w", err)
	}
	return id, nil
}
