package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/inspect"
)

const migrateExample = "skein migrate %s --url 'postgres://localhost/jobs?schema=skein'"

func (a *app) migrateCommand() *cobra.Command {
	return group("migrate", "Make, change and remove the schema of a Postgres",
		a.migrateUp(), a.migrateDown(), a.migrateStatus(), a.migrateSQL())
}

func (a *app) migrateUp() *cobra.Command {
	to := 0
	c := a.command(
		"up",
		"Create or upgrade the tables and functions; a newer schema that permits this program stays",
		fmt.Sprintf(migrateExample, "up"),
		cobra.NoArgs,
		a.onSchema(func(ctx context.Context, _ *inspect.Inspector) error {
			if to < 0 || to > postgres.NewestVersion() {
				return fmt.Errorf("%w: there is no version %d; this program supports 1 to %d",
					errUsage, to, postgres.NewestVersion())
			}
			return postgres.Migrate(ctx, a.backend.Pool, postgres.MigrateOptions{Schema: a.backend.Schema, To: to})
		}),
	)

	c.Flags().IntVar(&to, "to", 0,
		fmt.Sprintf("migrate to this `VERSION`, also downwards; 0 means the newest, which is %d; "+
			"in migrate sql 0 removes everything", postgres.NewestVersion()))
	return c
}

func (a *app) migrateDown() *cobra.Command {
	yes, schema := false, ""
	c := a.command(
		"down",
		"Remove the tables and functions, with all jobs; refused while servers run",
		fmt.Sprintf(migrateExample, "down")+" --yes --schema skein",
		cobra.NoArgs,
		a.onSchema(func(ctx context.Context, i *inspect.Inspector) error {
			named := schema != ""
			switch {
			case named && schema != a.schemaName():
				return fmt.Errorf("%w: --schema %s, but the URL names the schema %s; nothing was removed",
					errUsage, quoted(schema), quoted(a.schemaName()))
			case yes && !named:
				return fmt.Errorf("%w: --yes alone removes nothing, because all jobs would be lost; "+
					"give the schema's name too, with --schema", errUsage)
			}

			if err := a.noServers(ctx, i); err != nil {
				return err
			}
			if err := a.sayLoss(ctx, i); err != nil {
				return err
			}

			if !yes {
				if err := a.schemaTyped(ctx); err != nil {
					return err
				}
			}

			return postgres.Unmigrate(ctx, a.backend.Pool, a.schemaName())
		}),
	)

	c.Flags().BoolVarP(&yes, "yes", "y", false, "with --schema: don't ask")
	c.Flags().StringVar(&schema, "schema", "", "confirm the schema's `NAME`: it must be the one that the URL names")
	return c
}

// noServers returns an error that names the servers that still announce themselves, if there are
// any.
func (a *app) noServers(ctx context.Context, i *inspect.Inspector) error {
	nodes, err := i.Nodes(ctx)
	if err != nil {
		return err
	}

	var names []string
	for at := range nodes {
		if nodes[at].State != inspect.NodeGone {
			names = append(names, quoted(nodes[at].Name))
		}
	}

	if len(names) > 0 {
		return fmt.Errorf("servers still run on the schema %s: %s; stop them first, see skein node ls. "+
			"Nothing was removed",
			quoted(a.schemaName()), strings.Join(names, ", "))
	}
	return nil
}

// sayLoss prints how many queues, jobs and dead letters the removal of the schema would delete.
func (a *app) sayLoss(ctx context.Context, i *inspect.Inspector) error {
	queues, err := i.Stats(ctx)
	if err != nil {
		return err
	}

	var queued, claimed, dead int
	for at := range queues {
		c := &queues[at].Counts
		queued, claimed, dead = queued+int(c.Length()), claimed+int(c.Claimed), dead+int(c.Dead)
	}

	_, _ = fmt.Fprintf(a.stderr,
		"database %s, schema %s: "+
			"%d queues with %d queued jobs, %d claimed jobs and %d dead letters will be removed permanently.\n",
		quoted(a.backend.Pool.Config().ConnConfig.Database), quoted(a.schemaName()), len(queues), queued, claimed, dead)
	return nil
}

// schemaTyped asks the user to type the schema's name. Any other answer is an error.
func (a *app) schemaTyped(ctx context.Context) error {
	_, _ = fmt.Fprint(a.stderr, "Type the schema's name to remove it: ")
	answer, err := readLine(ctx, a.stdin)
	switch {
	case err != nil:
		return err
	case answer != a.schemaName():
		return fmt.Errorf("%w: the schema's name was not typed; "+
			"use --yes with --schema to remove it without a question", errNothing)
	}
	return nil
}

// schemaName returns the name of the schema that the URL names.
func (a *app) schemaName() string { return cmp.Or(a.backend.Schema, postgres.DefaultSchema) }

// fit is the result of migrate status.
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
	return a.command(
		"status",
		"Show whether the schema fits this program, and the newest version that the program supports; "+
			"ends with 6 if the schema does not fit",
		fmt.Sprintf(migrateExample, "status"),
		cobra.NoArgs,
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
		}),
	)
}

// onSchema returns a command's function, which calls do if the store is a Postgres.
func (a *app) onSchema(
	do func(context.Context, *inspect.Inspector) error,
) func(context.Context, *inspect.Inspector, []string) error {
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
		Use:     "sql",
		Short:   "Print the SQL of a migration, for tools of your own: run it in one transaction",
		Args:    arguments(cobra.NoArgs),
		Example: "  skein migrate sql --schema jobs > 001_skein.sql",
		RunE: func(*cobra.Command, []string) error {
			sql := postgres.MigrationSQL(schema, from, to)
			if sql == "" {
				return fmt.Errorf("%w: there is no migration from version %d to %d; the newest version is %d",
					errUsage, from, to, postgres.NewestVersion())
			}
			_, err := fmt.Fprint(a.stdout, sql)
			return err
		},
	}

	c.Flags().StringVar(&schema, "schema", postgres.DefaultSchema, "the schema's `NAME`")
	c.Flags().IntVar(&from, "from", 0, "the present `VERSION` of the schema; 0 if there is none")
	c.Flags().IntVar(&to, "to", postgres.NewestVersion(),
		"the wanted `VERSION` of the schema; 0 removes everything; in migrate up 0 means the newest")
	return c
}
