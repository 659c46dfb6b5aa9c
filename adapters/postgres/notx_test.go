package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// A transaction that is nil is refused by everything that is done in it.
func TestANilTransactionIsRefused(t *testing.T) {
	store := postgres.New(nil, postgres.Options{})
	for name, tx := range map[string]*postgres.Tx{
		"Tx": store.Tx(nil), "SQLTx": store.SQLTx(nil), "NoWakeups": store.Tx(nil).NoWakeups(),
	} {
		q := skein.NewQueue("q", skein.QueueOptions[string]{})
		client := skein.NewClient(tx, skein.ClientOptions{})
		settled := []core.Settlement{{ID: "a"}}

		for what, err := range map[string]error{
			"Push":   q.Push(t.Context(), client, "a", "x"),
			"Settle": tx.Settle(t.Context(), core.Shard{Queue: "q"}, settled),
		} {
			if !errors.Is(err, ports.ErrInvalidRequest) || !strings.Contains(err.Error(), "the transaction is nil") {
				t.Errorf("%s of %s = %v, want ErrInvalidRequest that says why", what, name, err)
			}
		}
	}
}
