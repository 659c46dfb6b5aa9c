package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/ports"
)

// process is what the command uses of its process: streams, environment and connections.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(name string) string
	// connect returns the store that a URL names.
	connect func(ctx context.Context, url string) (*backends.Backend, error)
	// answersWithin is how long the command waits for answers that it can do without: whether the
	// store answers at all, and the list of servers. 0 means [inspect.ServersPatience].
	answersWithin time.Duration
	// zone is the time zone of the user. nil means that of the machine.
	zone *time.Location
}

func (p process) answerTime() time.Duration { return cmp.Or(p.answersWithin, inspect.ServersPatience) }

// run runs the command with these arguments and returns the exit code.
func (p process) run(ctx context.Context, args []string) int {
	a := &app{process: p, screen: p.stdout}
	if terminal(p.stdout) {
		a.stdout = &screen{to: p.stdout}
	}

	root := a.root()
	root.SetArgs(args)
	root.SetIn(p.stdin)
	root.SetOut(a.stdout)
	root.SetErr(p.stderr)

	err := a.away(ctx, a.late(root.ExecuteContext(ctx)))
	if a.stop != nil {
		a.stop()
	}
	for _, b := range []*backends.Backend{a.backend, a.other} {
		if b != nil {
			err = errors.Join(err, b.Close())
		}
	}

	if err != nil {
		_, _ = fmt.Fprintln(p.stderr, "skein:", multiline(err.Error()))
	}
	return exitCode(err)
}

// late adds to an error that --timeout was its cause. The errors of actions that were stopped
// midway, or at their question, are already clear.
func (a *app) late(err error) error {
	if a.timeout > 0 && errors.Is(err, context.DeadlineExceeded) &&
		!errors.Is(err, errStopped) && !errors.Is(err, errNothing) {
		return fmt.Errorf("%w: no answer within --timeout %v: %w", errAway, a.timeout, err)
	}
	return err
}

// away adds to an error without an explanation whether the store answers at all.
func (a *app) away(ctx context.Context, err error) error {
	if a.inspector == nil || exitCode(err) != exitFailed || isPartial(err) ||
		ports.FailureOf(err) != ports.FailureUnknown {
		return err
	}
	if a.unanswered(context.WithoutCancel(ctx)) != nil {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
}

// unanswered is errAway if the store does not answer.
func (a *app) unanswered(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, a.answerTime())
	defer stop()
	err := a.inspector.Ping(ctx)
	// Any other error of the server explains the failure itself.
	if err != nil && (ctx.Err() != nil || ports.FailureOf(err) == ports.FailureUnreachable) {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return nil
}

// app is one run of the command.
type app struct {
	process
	url, urlFile, profile, output string
	// timeout is how long the command may take; 0 means no limit. stop ends its context.
	timeout time.Duration
	stop    func()
	// reason is the operator's reason for an action, for the audit.
	reason string
	// screen is standard output, unescaped.
	screen io.Writer

	backend   *backends.Backend
	inspector *inspect.Inspector
	// other is the store to which a command moves entries, or nil if it is the same store.
	other *backends.Backend
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:     "skein",
		Version: version(),
		Short:   "Show the queues of a store, and act on them",
		Long: "skein shows the queues of a store, and acts on them. " +
			"The store is named by --url, --url-file, --profile, or\n" +
			"the variables SKEIN_URL and SKEIN_PROFILE:\n  " + strings.ReplaceAll(backends.Usage, ", ", ",\n  ") +
			"\n" +
			"A store memory:// is empty at each start. Put secrets, such as a password, " +
			"into a variable or a file, so that\n" +
			"other users of the machine can't see them. " +
			"The file of profiles is " + profilesDefault + " (or\n" +
			"skein/profiles in XDG_CONFIG_HOME), or the file that SKEIN_PROFILES names. " +
			"Each of its lines is a name and a URL.\n\n" + exitUsageText(),
		Example:       "  export SKEIN_URL=redis://localhost:6379\n  skein stats",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return cmd.Help()
		},
	}

	root.Flags().Bool("version", false, "print the version of this program")
	root.SetVersionTemplate("skein {{.Version}}\n")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		if cmd.HasSubCommands() && cmd.Flags().NArg() > 0 { // the flag follows an unknown command
			return unknown(cmd, cmd.Flags().Arg(0))
		}
		return usage(cmd, plainFlag(err))
	})

	flags := root.PersistentFlags()
	flags.StringVar(&a.url, "url", "", "the store's `URL`")
	flags.StringVar(&a.urlFile, "url-file", "", "a `FILE` with the store's URL in its first line")
	flags.StringVar(&a.reason, "reason", "", "`WHY` you act, for the audit")
	flags.StringVarP(&a.output, "output", "o", "table", "the `FORMAT`: "+formatNames)
	flags.DurationVar(&a.timeout, "timeout", 0,
		"the longest time that the command may take; 0 means no limit, and 2s for check. "+
			"An action on all that match ends with the step that it then takes, which may be its last")
	flags.StringVar(&a.profile, "profile", "", "the store with this `NAME` in the file of profiles")

	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		switch {
		case a.timeout < 0:
			return usage(cmd, fmt.Errorf("--timeout %v; give more than 0, or leave it out", a.timeout))
		case a.timeout > 0:
			ctx, stop := context.WithTimeout(cmd.Context(), a.timeout)
			a.stop = stop
			cmd.SetContext(ctx)
		}

		if formats[a.output] == nil {
			return usage(cmd, fmt.Errorf("unknown format -o %s; use %s", a.output, formatNames))
		}
		cmd.SetContext(inspect.WithActor(cmd.Context(), a.actor()))
		return nil
	}

	root.AddCommand(a.statsCommand(), a.queueCommand(), a.jobCommand(), a.morgueCommand(),
		a.scheduleCommand(), a.shardCommand(), a.nodeCommand(), a.auditCommand(),
		a.topCommand(), a.wrongCommand(), a.errorsCommand(), a.doctorCommand(), a.checkCommand(), a.repairCommand(), a.migrateCommand(),
		a.serveCommand(), a.workCommand(), a.exporterCommand(), a.demoCommand(),
		a.versionCommand(), a.completionCommand())
	root.SetHelpCommand(helpCommand(root))
	a.complete(root)
	return root
}

// plainFlag returns the error of a flag's value as what the flag wants.
func plainFlag(err error) error {
	var invalid *pflag.InvalidValueError
	if !errors.As(err, &invalid) {
		return err
	}
	wanted := map[string]string{
		"int": "a whole number", "intSlice": "a whole number", "float64": "a number", "bool": "true or false",
		"duration": "a duration such as 90s or 24h",
	}[invalid.GetFlag().Value.Type()]
	if wanted == "" {
		return err
	}
	return fmt.Errorf("--%s %q; give %s", invalid.GetFlag().Name, invalid.GetValue(), wanted)
}

// group returns a command that only has other commands below it.
func group(name, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{
		Use: name, Short: short, Example: commands[0].Example,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(cmd, args[0])
			}
			return usage(cmd, fmt.Errorf("it needs a command: %s", either(namesBelow(cmd))))
		},
	}
	c.AddCommand(commands...)
	return c
}

// arguments returns check with its errors as errors of usage.
func arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usage(cmd, err)
		}
		return nil
	}
}

// open connects to the store.
func (a *app) open(ctx context.Context) (*inspect.Inspector, error) {
	url, err := a.storeURL()
	if err != nil {
		return nil, err
	}
	if a.backend, err = a.connect(ctx, url); err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	a.inspector = a.inspectorOf(a.backend)
	return a.inspector, nil
}

// inspectorOf returns an inspector of a store, whose warnings go to standard error.
func (a *app) inspectorOf(b *backends.Backend) *inspect.Inspector {
	return inspect.New(b.Store, inspect.Options{
		Logger: slog.New(slog.NewTextHandler(a.stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
}

func (a *app) storeURL() (string, error) {
	given := 0
	for _, flag := range []string{a.url, a.urlFile, a.profile} {
		if flag != "" {
			given++
		}
	}

	switch {
	case given > 1:
		return "", fmt.Errorf("%w: give one of --url, --url-file and --profile", errUsage)
	case a.url != "":
		return a.url, nil
	case a.urlFile != "":
		text, err := os.ReadFile(a.urlFile)
		if err != nil {
			return "", fmt.Errorf("%w: --url-file: %w", errUsage, err)
		}
		line, _, _ := strings.Cut(string(text), "\n")
		return strings.TrimSpace(line), nil
	case a.profile != "":
		return a.profileURL(a.profile)
	case a.env("SKEIN_URL") != "":
		return a.env("SKEIN_URL"), nil
	case a.env("SKEIN_PROFILE") != "":
		return a.profileURL(a.env("SKEIN_PROFILE"))
	}

	return "", fmt.Errorf("%w: no store is named; give --url, --url-file or --profile, "+
		"or set SKEIN_URL or SKEIN_PROFILE; a URL is %s",
		errUsage, backends.Usage)
}
