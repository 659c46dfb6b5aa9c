package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
)

// opening is each account's initial balance.
const opening = 1000

// movement is a change of an account's balance: the payload. Its id is the
// account.
type movement struct {
	Transfer int `json:"transfer"`
	// Peer is the account to which the money goes, or from which it comes.
	Peer string `json:"peer"`
	// Amount is added to the balance; a payment's is below 0.
	Amount int64 `json:"amount"`
}

// movements is the queue. A transaction covers a few movements. Each death of the process counts
// as a recovery of the running jobs, and here there may be very many.
var movements = skein.NewQueue("movements", skein.QueueOptions[movement]{MaxPayloads: 5, MaxRecoveries: 1_000_000})

// transfer is an order to pay.
type transfer struct {
	from, to string
	amount   int64
}

type bank struct {
	pool    *pgxpool.Pool
	store   *postgres.Store
	client  *skein.Client
	options options
}

func newBank(pool *pgxpool.Pool, store *postgres.Store, o options) *bank {
	return &bank{pool: pool, store: store, client: skein.NewClient(store, skein.ClientOptions{}), options: o}
}

// transfers returns the ordered transfers: the same in each run with the same flags.
func (b *bank) transfers() []transfer {
	random := rand.New(rand.NewPCG(b.options.seed, 0))
	list := make([]transfer, b.options.transfers)
	for i := range list {
		from := random.IntN(b.options.accounts)
		to := (from + 1 + random.IntN(b.options.accounts-1)) % b.options.accounts
		list[i] = transfer{from: accountName(from), to: accountName(to), amount: 1 + random.Int64N(100)}
	}
	return list
}

func accountName(i int) string { return fmt.Sprintf("account-%03d", i) }

const tables = `
CREATE TABLE IF NOT EXISTS accounts (
	id      text PRIMARY KEY,
	balance bigint NOT NULL
);
CREATE TABLE IF NOT EXISTS history (
	place    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	account  text NOT NULL REFERENCES accounts,
	transfer bigint NOT NULL,
	amount   bigint NOT NULL,
	balance  bigint NOT NULL
)`

// open opens the accounts and orders all transfers, once.
func (b *bank) open(ctx context.Context) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, tables); err != nil {
			return err
		}

		opened := 0
		if err := tx.QueryRow(ctx, "SELECT count(*) FROM accounts").Scan(&opened); err != nil || opened > 0 {
			return err
		}

		for i := range b.options.accounts {
			if _, err := tx.Exec(ctx, "INSERT INTO accounts VALUES ($1, $2)", accountName(i), opening); err != nil {
				return err
			}
		}

		var entries []skein.Entry[movement]
		for i, t := range b.transfers() {
			entries = append(entries, skein.Entry[movement]{ID: t.from, Payload: movement{i, t.to, -t.amount}})
		}
		return movements.PushMany(ctx, b.client.Via(b.store.Tx(tx)), entries)
	})
}

// move is the handler. Its whole effect happens, or nothing.
func (b *bank) move(ctx context.Context, account string, list []movement) error {
	return pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		jobs := b.store.Tx(tx)
		if err := skein.SettleIn(ctx, jobs); err != nil {
			return err
		}

		for _, m := range list {
			_, err := tx.Exec(ctx, `
				WITH changed AS (
					UPDATE accounts SET balance = balance + $3 WHERE id = $1 RETURNING balance
				)
				INSERT INTO history (account, transfer, amount, balance) SELECT $1, $2, $3, balance FROM changed`,
				account, m.Transfer, m.Amount)
			if err != nil {
				return err
			}

			if m.Amount > 0 {
				continue
			}

			receipt := movement{Transfer: m.Transfer, Peer: account, Amount: -m.Amount}
			if err := movements.Push(ctx, b.client.Via(jobs), m.Peer, receipt); err != nil {
				return err
			}
		}

		time.Sleep(b.options.think)
		return nil
	})
}
