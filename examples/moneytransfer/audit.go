package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"
)

// entry is a line of an account's history.
type entry struct {
	Account  string
	Transfer int
	Amount   int64
	Balance  int64
}

// findings are an audit's counts.
type findings struct {
	entries int
	// missing and extra count the transfers that were paid or received too seldom or too often.
	missing, extra int
	// late counts the payments that came after a later payment of the same account. wrong counts the
	// balances that are not the sum of the previous balance and the amount.
	late, wrong int
	// sum is all the money there is.
	sum int64
}

var errWrong = errors.New("the books are wrong")

// audit reads all histories and returns its findings.
func (b *bank) audit(ctx context.Context, out io.Writer) error {
	rows, err := b.pool.Query(ctx, "SELECT account, transfer, amount, balance FROM history ORDER BY place")
	if err != nil {
		return err
	}
	history, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
	if err != nil {
		return err
	}

	f := examine(b.transfers(), history)
	if err := b.pool.QueryRow(ctx, "SELECT sum(balance)::bigint FROM accounts").Scan(&f.sum); err != nil {
		return err
	}

	want := int64(b.options.accounts) * opening
	fmt.Fprintf(out,
		"%d transfers, %d entries: %d missing, %d twice, %d out of order, %d wrong balances; "+
			"%d of %d in all accounts\n",
		b.options.transfers, f.entries, f.missing, f.extra, f.late, f.wrong, f.sum, want)
	if f.missing+f.extra+f.late+f.wrong > 0 || f.sum != want {
		return errWrong
	}
	return nil
}

// examine compares histories, each in its order, with the ordered transfers.
func examine(ordered []transfer, history []entry) findings {
	f := findings{entries: len(history)}
	type side struct {
		account  string
		transfer int
		amount   int64
	}

	open := make(map[side]int)
	for i, t := range ordered {
		open[side{t.from, i, -t.amount}]++
		open[side{t.to, i, t.amount}]++
	}

	balances, paid := make(map[string]int64), make(map[string]int)
	for _, e := range history {
		open[side{e.Account, e.Transfer, e.Amount}]--
		if _, known := balances[e.Account]; !known {
			balances[e.Account] = opening
		}

		balances[e.Account] += e.Amount
		if balances[e.Account] != e.Balance {
			f.wrong++
		}

		if e.Amount < 0 {
			if e.Transfer < paid[e.Account] {
				f.late++
			}
			paid[e.Account] = e.Transfer
		}
	}

	for _, n := range open {
		f.missing += max(0, n)
		f.extra += max(0, -n)
	}

	return f
}
