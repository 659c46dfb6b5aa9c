package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/service"
)

// settingRow is a setting of a queue, with the settings that it belongs to.
type settingRow struct {
	inspect.SettingState
	of  *inspect.QueueSettings
	now time.Time
}

// settingColumns have the value in force and its origin for people, and the other fields for wide
// tables and programs.
func settingColumns() columns[settingRow] {
	fields := within(fieldColumns[inspect.SettingState](), func(r *settingRow) *inspect.SettingState {
		return &r.SettingState
	})
	for at := range fields {
		fields[at].wide = fields[at].name != "name" && fields[at].name != "in_force"
	}

	return append(fields, columns[settingRow]{
		{"from", false, func(r *settingRow) any { return service.SettingOrigin(&r.SettingState, r.now) }},
		{"version", true, func(r *settingRow) any { return r.of.Version }},
		{"servers", true, func(r *settingRow) any { return r.of.Servers }},
		{"following", true, func(r *settingRow) any { return r.of.Following }},
	}...)
}

func (a *app) showSettings() *cobra.Command {
	c := a.command("settings QUEUE", "Show the settings of a queue, beside those in the code of its servers",
		"skein queue settings orders", cobra.ExactArgs(1),
		func(ctx context.Context, i *inspect.Inspector, args []string) error {
			of, err := i.Settings(ctx, args[0])
			if err != nil {
				return err
			}

			now := time.Now()
			var rows []settingRow
			for _, s := range of.Settings {
				rows = append(rows, settingRow{s, &of, now})
			}
			cols := settingColumns()
			if a.output == "table" || a.output == "wide" {
				cols = cols.with("in_force", func(r *settingRow) any { return service.InForce(&r.SettingState) })
				a.sayFollowing(&of, now)
			}
			return list(a, cols, all(rows, nil))
		})
	c.Long = c.Short + ".\n" + settingsHelp()
	return c
}

// sayFollowing writes to standard error who has changed the settings, and which servers follow.
func (a *app) sayFollowing(of *inspect.QueueSettings, now time.Time) {
	var parts []string
	switch {
	case of.Broken:
		parts = append(parts, "the settings can't be read: set one of them again, which replaces all")
	case of.Version > 0:
		parts = append(parts, fmt.Sprintf("version %d, changed by %s", of.Version, service.Changed(of.By, of.At, now)))
	}
	if following := service.Following(of); following != "" && of.Version > 0 && !of.Broken {
		parts = append(parts, following)
	}
	if len(parts) > 0 {
		_, _ = fmt.Fprintf(a.stderr, "%s: %s\n", of.Queue, escaped(strings.Join(parts, "; ")))
	}
}

// settingsHelp lists the settings, each in a paragraph.
func settingsHelp() string {
	var b strings.Builder
	b.WriteString("A setting replaces the option in the code of all servers until it is unset. " +
		"Servers follow a change\nwithin a third of their lease TTL, 3.3s by default. The settings are:")
	for _, k := range core.DescribedSettings() {
		fmt.Fprintf(&b, "\n\n%s: %s%s.\nIt is %s.", k.Name, strings.ToLower(k.About[:1]), k.About[1:], k.Accepts)
	}
	return b.String()
}

// settingChange is a setting that a command has changed or would change.
type settingChange struct {
	name, before, after string
	version             int64
}

var settingChangeColumns = columns[settingChange]{
	{"name", false, func(c *settingChange) any { return c.name }},
	{"before", false, func(c *settingChange) any { return c.before }},
	{"after", false, func(c *settingChange) any { return c.after }},
	{"version", false, func(c *settingChange) any { return c.version }},
}

// settingsVerb is a command that changes settings.
type settingsVerb struct {
	use, short, example string
	// change returns the change that an argument names.
	change func(arg string) (core.SettingChange, error)
}

func (a *app) setSettings() *cobra.Command {
	return a.changeSettings(&settingsVerb{
		"set QUEUE NAME=VALUE...", "Set settings of a queue, which its servers follow within seconds",
		`skein queue set orders max-running=20 --reason "OPS-12: the bank answers slowly"`,
		func(arg string) (core.SettingChange, error) {
			name, value, ok := strings.Cut(arg, "=")
			if !ok {
				return core.SettingChange{}, fmt.Errorf("%w: %q is no NAME=VALUE, such as max-running=20", errUsage, arg)
			}
			canonical, err := core.ParseSetting(name, value)
			return core.SettingChange{Name: name, Value: canonical}, err
		},
	})
}

func (a *app) unsetSettings() *cobra.Command {
	return a.changeSettings(&settingsVerb{
		"unset QUEUE NAME...", "Unset settings of a queue, so that the code of its servers applies",
		`skein queue unset orders max-running --reason "OPS-12: closed"`,
		func(arg string) (core.SettingChange, error) { return core.SettingChange{Name: arg, Unset: true}, nil },
	})
}

func (a *app) changeSettings(v *settingsVerb) *cobra.Command {
	var version int64
	var dry, yes bool
	c := a.command(v.use, v.short, v.example, cobra.MinimumNArgs(2), nil)
	c.Long = c.Short + ".\n" + settingsHelp()
	c.Flags().Int64Var(&version, "version", 0,
		"change the settings only if they have this `VERSION`, as skein queue settings -o wide shows it")
	c.Flags().BoolVar(&dry, "dry-run", false, "change nothing, and show what would change")
	c.Flags().BoolVarP(&yes, "yes", "y", false, "don't ask before dead letters are removed")

	c.RunE = func(cmd *cobra.Command, args []string) error {
		o := inspect.ConfigureOptions{DryRun: true}
		if c.Flags().Changed("version") {
			o.Version = &version
		}
		var changes []core.SettingChange
		for _, arg := range args[1:] {
			change, err := v.change(arg)
			if err != nil {
				return err
			}
			changes = append(changes, change)
		}

		i, err := a.open(cmd.Context())
		if err != nil {
			return err
		}
		return a.configure(cmd.Context(), i, args[0], changes, o, dry, yes)
	}
	return c
}

// configure changes settings, after a look at what that does. The change replaces the settings that
// the look has seen.
func (a *app) configure(
	ctx context.Context, i *inspect.Inspector, queue string, changes []core.SettingChange, o inspect.ConfigureOptions,
	dry, yes bool,
) error {
	r, err := i.Configure(ctx, queue, changes, o)
	if err != nil {
		return err
	}
	effect, err := morgueEffect(ctx, i, queue, &r)
	if err != nil {
		return err
	}
	if effect != "" {
		_, _ = fmt.Fprintf(a.stderr, "%s: %s\n", queue, effect)
	}

	if effect != "" && !dry && !yes {
		if err := a.ask(ctx, "removed"); err != nil {
			return err
		}
	}
	if !dry {
		o.DryRun, o.Version = false, &r.Before.Version
		if r, err = i.Configure(ctx, queue, changes, o); err != nil {
			return err
		}
	}
	if len(r.Changed) == 0 {
		_, _ = fmt.Fprintln(a.stderr, "Nothing changes: the settings have these values already.")
	}
	return list(a, settingChangeColumns, all(changedRows(&r), nil))
}

// morgueEffect describes what a change does to the dead letters of a queue.
func morgueEffect(ctx context.Context, i *inspect.Inspector, queue string, r *inspect.Configured) (string, error) {
	now := time.Now()
	if service.MorgueEffect(&r.Before, &r.After, 0, now, now) == "" {
		return "", nil
	}

	stats, err := i.Stats(ctx, queue)
	if err != nil && !isPartial(err) {
		return "", err
	}
	dead, oldest := stats[0].Dead, now
	for letter, err := range i.Morgue(ctx, queue, inspect.ListOptions{Limit: 1}) {
		if err != nil && !isPartial(err) {
			return "", err
		}
		if err == nil {
			oldest = letter.ChangedAt
		}
		break
	}
	return service.MorgueEffect(&r.Before, &r.After, dead, oldest, stats[0].Now), nil
}

// changedRows returns the settings that a change has changed.
func changedRows(r *inspect.Configured) (rows []settingChange) {
	value := func(s *core.Settings, name string) string {
		setting, set := s.Find(name)
		if !set {
			return "unset"
		}
		return service.SettingText(name, setting.Value)
	}
	for _, name := range r.Changed {
		rows = append(rows, settingChange{name, value(&r.Before, name), value(&r.After, name), r.After.Version})
	}
	return rows
}
