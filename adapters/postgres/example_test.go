package postgres_test

import (
	"context"
	"database/sql"
	"log"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
)

// OrderPlaced is an event of an order.
type OrderPlaced struct {
	Total int
}

var orders = skein.NewQueue("orders", skein.QueueOptions[OrderPlaced]{})

func Example() {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, "postgres://localhost/shop")
	if err != nil {
		log.Fatal(err)
	}
	defer pool.Close()
	if err := postgres.Migrate(ctx, pool, postgres.MigrateOptions{}); err != nil {
		log.Fatal(err)
	}
	store := postgres.New(pool, postgres.Options{})

	client := skein.NewClient(store, skein.ClientOptions{})
	if err := orders.Push(ctx, client, "order-42", OrderPlaced{Total: 100}); err != nil {
		log.Fatal(err)
	}
	handler := orders.Handler(func(_ context.Context, id string, placed []OrderPlaced) error {
		log.Println(id, placed)
		return nil
	})
	if err := skein.NewServer(store, skein.ServerOptions{}, handler).Run(ctx); err != nil {
		log.Fatal(err)
	}
}

// The order and its job are there both or not at all.
func ExampleStore_Tx() {
	place := func(ctx context.Context, pool *pgxpool.Pool, store *postgres.Store, client *skein.Client) error {
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "INSERT INTO orders (id, total) VALUES ($1, $2)", "order-42", 100); err != nil {
				return err
			}
			return orders.Push(ctx, client.Via(store.Tx(tx)), "order-42", OrderPlaced{Total: 100})
		})
	}
	_ = place
}

// The handler's effect and the end of its job are one: it happens exactly once.
func ExampleStore_Tx_settle() {
	handler := func(pool *pgxpool.Pool, store *postgres.Store) skein.Handler {
		return orders.Handler(func(ctx context.Context, id string, placed []OrderPlaced) error {
			return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
				if err := skein.SettleIn(ctx, store.Tx(tx)); err != nil {
					return err
				}

				for _, p := range placed {
					if _, err := tx.Exec(ctx,
						"UPDATE accounts SET owes = owes + $2 WHERE id = $1", id, p.Total,
					); err != nil {
						return err
					}
				}
				return nil
			})
		})
	}
	_ = handler
}

// A transaction of database/sql does as well, with pgx's driver or another.
func ExampleStore_SQLTx() {
	place := func(ctx context.Context, db *sql.DB, store *postgres.Store, client *skein.Client) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // does nothing after Commit

		if _, err := tx.ExecContext(ctx,
			"INSERT INTO orders (id, total) VALUES ($1, $2)", "order-42", 100,
		); err != nil {
			return err
		}
		if err := orders.Push(ctx, client.Via(store.SQLTx(tx)), "order-42", OrderPlaced{Total: 100}); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = place
}
