package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/inspect"
)

const migrateExample = "skein migrate %s --url 'postgres://localhost/jobs?schema=skein'"

func (a *app) migrateCommand() *cobra.Command {
	return group("migrate", "Make, change and remove the schema of a Postgres", a.migrateUp(), a.migrateDown(), a.migrateStatus(), a.migrateSQL())
}

func (a *app) migrateUp() *cobra.Command {
	to := 0
	c := a.command("up", "Make the tables and functions, or bring them to this program's version; a newer one that it may use stays", fmt.Sprintf(migrateExample, "up"), cobra.NoArgs,
		a.onSchema(func(ctx context.Context, _ *inspect.Inspector) error {
			if to < 0 || to > postgres.NewestVersion() {
				return fmt.Errorf("%w: there is no version %d; this program knows 1 to %d", errUsage, to, postgres.NewestVersion())
			}
			return postgres.Migrate(ctx, a.backend.Pool, postgres.MigrateOptions{Schema: a.backend.Schema, To: to})
		}))
	c.Flags().IntVar(&to, "to", 0, fmt.Sprintf("this `VERSION`, also downwards; 0 is the newest, which is %d", postgres.NewestVersion()))
	return c
}

func (a *app) migrateDown() *cobra.Command {
	yes := false
	c := a.command("down", "Remove the tables and functions, with all jobs", fmt.Sprintf(migrateExample, "down")+" --yes", cobra.NoArgs,
		a.onSchema(func(ctx context.Context, _ *inspect.Inspector) error {
			if !yes {
				return fmt.Errorf("%w: all jobs would be gone; give --yes", errUsage)
			}
			return postgres.Unmigrate(ctx, a.backend.Pool, a.backend.Schema)
		}))
	c.Flags().BoolVarP(&yes, "yes", "y", false, "all jobs may go")
	return c
}

// fit is what status shows.
type fit struct {
	fits bool
	why  string
}

var fitColumns = columns[fit]{
	{"newest", false, func(*fit) any { return postgres.NewestVersion() }},
	{"fits", false, func(f *fit) any { return f.fits }},
	{"why", false, func(f *fit) any { return f.why }},
}

func (a *app) migrateStatus() *cobra.Command {
	return a.command("status", "Say whether the schema fits this program, whose newest version is shown; ends with 6 if it does not", fmt.Sprintf(migrateExample, "status"), cobra.NoArgs,
		a.onSchema(func(ctx context.Context, i *inspect.Inspector) error {
			err := i.Ping(ctx)
			if err != nil && !errors.Is(err, inspect.ErrUnusable) {
				return err
			}
			f := fit{fits: err == nil}
			if err != nil {
				f.why = err.Error()
				err = fmt.Errorf("%w: the schema does not fit; see skein migrate up --help", errFound)
			}
			return firstOf(one(a, fitColumns, &f), err)
		}))
}

// onSchema does something with the Postgres that the URL names.
func (a *app) onSchema(do func(context.Context, *inspect.Inspector) error) func(context.Context, *inspect.Inspector, []string) error {
	return func(ctx context.Context, i *inspect.Inspector, _ []string) error {
		if a.backend.Pool == nil {
			return fmt.Errorf("%w: only a Postgres has a schema to migrate; the URL names another store", errUsage)
		}
		return do(ctx, i)
	}
}

func (a *app) migrateSQL() *cobra.Command {
	var schema string
	var from, to int
	c := &cobra.Command{
		Use: "sql", Short: "Print the SQL of a migration, for tools of your own: run it in one transaction", Args: arguments(cobra.NoArgs),
		Example: "  skein migrate sql --schema jobs > 001_skein.sql",
		RunE: func(*cobra.Command, []string) error {
			sql := postgres.MigrationSQL(schema, from, to)
			if sql == "" {
				return fmt.Errorf("%w: there is nothing from version %d to %d; the newest is %d", errUsage, from, to, postgres.NewestVersion())
			}
			_, err := fmt.Fprint(a.stdout, sql)
			return err
		},
	}
	c.Flags().StringVar(&schema, "schema", postgres.DefaultSchema, "the schema's `NAME`")
	c.Flags().IntVar(&from, "from", 0, "the `VERSION` that it has; 0 is nothing")
	c.Flags().IntVar(&to, "to", postgres.NewestVersion(), "the `VERSION` that it is to have; 0 removes everything")
	return c
}
