package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// helpCommand shows the help of a command. The help command of cobra would show the help of the
// whole program for an unknown command.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Show the help of a command", Example: "  skein help morgue revive",
		RunE: func(_ *cobra.Command, args []string) error {
			c, left, err := root.Find(args)
			if err != nil || len(left) > 0 {
				if len(left) == 0 {
					left = args
				}
				return unknown(c, left[0])
			}
			return c.Help()
		},
	}
}

// completionCommand returns the command that writes completion scripts for shells.
func (a *app) completionCommand() *cobra.Command {
	shells := map[string]func(*cobra.Command, io.Writer) error{
		"bash":       bashCompletion,
		"zsh":        (*cobra.Command).GenZshCompletion,
		"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
		"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	}

	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "Write a script that completes commands and flags in bash, zsh, fish or powershell",
		Example:   `  eval "$(skein completion bash)"`,
		Args:      arguments(cobra.ExactArgs(1)),
		ValidArgs: []string{"bash", "zsh", "fish", "powershell"},
		RunE: func(cmd *cobra.Command, args []string) error {
			write := shells[args[0]]
			if write == nil {
				return usage(cmd, fmt.Errorf("no script for %q; use bash, zsh, fish or powershell", args[0]))
			}
			return write(cmd.Root(), a.stdout)
		},
	}
}
