package main

import (
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/skeinq/skein/inspect"
)

// The time that a completion waits for the store, and the largest number of groups that it offers.
const (
	completionPatience = time.Second
	completionGroups   = 50
)

// complete lets shells complete names that only the store knows: queues, servers and groups of dead
// letters. Names of files are completed only where a file belongs. If the store does not answer
// soon, nothing is completed. No error is printed, because the shell would write it into the line
// that is being typed.
func (a *app) complete(c *cobra.Command) {
	for _, inner := range c.Commands() {
		a.complete(inner)
	}

	switch _, argument, _ := strings.Cut(c.Use, " "); {
	case strings.HasPrefix(argument, "QUEUE"), strings.HasPrefix(argument, "[QUEUE...]"):
		many, file, named := strings.HasPrefix(argument, "["), strings.HasSuffix(argument, "[FILE]"),
			argument == "QUEUE NAME"
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			switch {
			case file && len(args) == 1:
				return nil, cobra.ShellCompDirectiveDefault
			case named && len(args) == 1:
				return a.completed(c, args, begun, scheduleNames)
			case len(args) > 0 && !many: // ids are too many to list
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completed(c, args, begun, queueNames)
		}
	case argument == "NODE":
		c.ValidArgsFunction = func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.completed(c, args, begun, nodeNames)
		}
	}

	flag := func(name string, names func(context.Context, *inspect.Inspector, []string) ([]string, error)) {
		if c.Flags().Lookup(name) != nil {
			_ = c.RegisterFlagCompletionFunc(name,
				func(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
					return a.completed(c, args, begun, names)
				}) // it fails only for an unknown flag
		}
	}

	flag("group", groupNames)
	flag("name", scheduleNames)
	for _, name := range []string{"to", "queue"} {
		if f := c.Flags().Lookup(name); f != nil && strings.Contains(f.Usage, "`QUEUE`") {
			flag(name, queueNames)
		}
	}

	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if strings.HasSuffix(f.Name, "-file") {
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault))
		}
	})

	if !c.HasParent() {
		c.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
		_ = c.RegisterFlagCompletionFunc("output",
			cobra.FixedCompletions(formatList(), cobra.ShellCompDirectiveNoFileComp))
		_ = c.RegisterFlagCompletionFunc("profile",
			func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				list, _ := a.profiles()
				var names []string
				for _, p := range list {
					names = append(names, p.name)
				}
				return names, cobra.ShellCompDirectiveNoFileComp
			})
	}
}

// completed reads names from the store. It returns those that begin with the typed text and are not
// among the arguments yet.
func (a *app) completed(
	c *cobra.Command,
	args []string,
	begun string,
	names func(context.Context, *inspect.Inspector, []string) ([]string, error),
) ([]string, cobra.ShellCompDirective) {
	parent := c.Context()
	if parent == nil {
		parent = context.Background()
	}
	ctx, stop := context.WithTimeout(parent, completionPatience)
	defer stop()

	i, err := a.open(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}

	list, _ := names(ctx, i, args) // if a part of the store can't be reached, the names of the rest
	return slices.DeleteFunc(list, func(name string) bool {
		return !strings.HasPrefix(name, begun) || slices.Contains(args, name) || strings.ContainsFunc(name, odd)
	}), cobra.ShellCompDirectiveNoFileComp
}

func queueNames(ctx context.Context, i *inspect.Inspector, _ []string) (names []string, err error) {
	queues, err := i.Queues(ctx)
	for _, q := range queues {
		names = append(names, q.Name)
	}
	return names, err
}

func nodeNames(ctx context.Context, i *inspect.Inspector, _ []string) (names []string, err error) {
	nodes, err := i.Nodes(ctx)
	for at := range nodes {
		if nodes[at].State != inspect.NodeGone && !slices.Contains(names, nodes[at].Name) {
			names = append(names, nodes[at].Name)
		}
	}
	return names, err
}

func groupNames(ctx context.Context, i *inspect.Inspector, args []string) (names []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	groups, err := i.Groups(ctx, args[0], completionGroups)
	for _, g := range groups.Groups {
		names = append(names, g.Name)
	}
	return names, err
}

// scheduleNames returns the first names of a queue's schedules.
func scheduleNames(ctx context.Context, i *inspect.Inspector, args []string) (names []string, err error) {
	if len(args) == 0 {
		return nil, nil
	}
	page, err := i.ScheduleNames(ctx, args[0], "", 0)
	for _, n := range page.Names {
		names = append(names, n.Name)
	}
	return names, err
}

// The package bash-completion has the function that splits the line. Many machines lack the
// package, and cobra's script does not work without it, so bashCompletion adds a split of its own.
const (
	packagedSplit = `    _get_comp_words_by_ref "$@" cur prev words cword
`
	eitherSplit = `    if declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
        _get_comp_words_by_ref "$@" cur prev words cword
    else
        __skein_split
    fi
`
	ownSplit = `
# Sets words, cword, cur and prev without the package bash-completion. Words that bash has split at
# = or a colon are one word.
__skein_split()
{
    local line=${COMP_LINE:0:COMP_POINT} at word
    words=()
    for ((at = 0; at <= COMP_CWORD; at++)); do
        word=${COMP_WORDS[at]}
        if ((at == 0)) || [[ ${line} == [[:space:]]* ]]; then
            line=${line#"${line%%[![:space:]]*}"}
            words[${#words[@]}]=
        fi
        if ((at == COMP_CWORD)); then
            word=${line}
        fi
        words[${#words[@]} - 1]+=${word}
        line=${line:${#word}}
    done
    cword=$((${#words[@]} - 1))
    cur=${words[cword]}
    prev=
    if ((cword > 0)); then
        prev=${words[cword - 1]}
    fi
}
`
)

// bashCompletion writes a script for bash with or without the package bash-completion.
func bashCompletion(root *cobra.Command, w io.Writer) error {
	var script bytes.Buffer
	if err := root.GenBashCompletionV2(&script, true); err != nil {
		return err
	}
	text := strings.Replace(script.String(), packagedSplit, eitherSplit, 1)
	_, err := io.WriteString(w, text+ownSplit)
	return err
}
