// Moneytransfer moves money between accounts, exactly once, however often it is
// killed:
//
//	go run ./examples/moneytransfer -store postgres://localhost/postgres
//
// At first it opens accounts and orders transfers between them, in one transaction. Then it carries
// out the orders. The handler of an account changes its balance, writes its history, pushes what
// another account is to receive, and settles its job, in one transaction. So a crash leaves nothing
// half done, and nothing is done twice. Kill the program with SIGKILL as often as you like, and
// start it again with the same flags.
//
// When all is done it reads every account's history and checks that each transfer
// is there once, in order, and that no money came or went. It exits with 1 if
// something is wrong.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/command"
)

// options are the flags.
type options struct {
	store, schema       string
	accounts, transfers int
	seed                uint64
	ttl, think          time.Duration
}

func main() {
	ctx, stop := command.Context(context.Background())
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "moneytransfer:", err)
		os.Exit(1)
	}
}

// run is the whole command.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parseFlags(args, stderr)
	if err != nil {
		return err
	}

	config, err := pgxpool.ParseConfig(o.store)
	if err != nil {
		return err
	}
	// Each lane's handler holds a connection; four more are for the server itself.
	config.MaxConns = max(config.MaxConns, skein.DefaultLanes+4)
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return err
	}

	defer pool.Close()
	if err := postgres.Migrate(ctx, pool, postgres.MigrateOptions{Schema: o.schema}); err != nil {
		return err
	}

	b := newBank(pool, postgres.New(pool, postgres.Options{Schema: o.schema}), o)
	if err := b.open(ctx); err != nil {
		return err
	}
	if err := b.serve(ctx); err != nil {
		return err
	}
	return b.audit(context.WithoutCancel(ctx), stdout)
}

func parseFlags(args []string, stderr io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("moneytransfer", flag.ContinueOnError)
	flags.SetOutput(stderr)

	flags.StringVar(&o.store, "store", "postgres://localhost/postgres",
		"the `URL` of a Postgres database, for accounts and jobs")
	flags.StringVar(&o.schema, "schema", postgres.DefaultSchema, "the schema that holds the jobs")
	flags.IntVar(&o.accounts, "accounts", 20, "how many accounts to open")
	flags.IntVar(&o.transfers, "transfers", 2000, "how many transfers to order")
	flags.Uint64Var(&o.seed, "seed", 1, "seed of the transfers")
	flags.DurationVar(&o.ttl, "ttl", 5*time.Second, "how `long` the jobs of a process that was killed wait")
	flags.DurationVar(&o.think, "think", 0, "how `long` a handler thinks before it commits")

	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.accounts < 2 || o.transfers < 0 {
		return o, fmt.Errorf("%d accounts, %d transfers: give at least 2 and 0", o.accounts, o.transfers)
	}

	return o, nil
}

// patience is how long no transfer may be done before the rest counts as lost.
const patience = time.Minute

// serve runs the jobs until every transfer has been paid and received.
func (b *bank) serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	server := skein.NewServer(b.store, skein.ServerOptions{LeaseTTL: b.options.ttl}, movements.Handler(b.move))
	go func() { ended <- server.Run(ctx) }()
	err := b.wait(ctx)
	stop()
	return errors.Join(err, <-ended)
}

// wait returns when all transfers are done, or when none was done for the time patience.
func (b *bank) wait(ctx context.Context) error {
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	before, moved := 0, time.Now()

	for {
		var entries int
		if err := b.pool.QueryRow(ctx, "SELECT count(*) FROM history").Scan(&entries); err != nil {
			return err
		}

		if entries != before {
			before, moved = entries, time.Now()
		}
		if entries >= 2*b.options.transfers || time.Since(moved) > patience {
			return nil
		}

		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}
