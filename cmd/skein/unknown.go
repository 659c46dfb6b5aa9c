package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// unknown is the mistake of a command that is not there: it names those that may be meant, or else, below a group, those that
// there are.
func unknown(cmd *cobra.Command, name string) error {
	meant := called(cmd.Root(), name)
	if len(meant) == 0 {
		cmd.SuggestionsMinimumDistance = 1 // of two, most names of two letters would be meant
		for _, near := range cmd.SuggestionsFor(name) {
			meant = append(meant, cmd.CommandPath()+" "+near)
		}
	}
	switch {
	case len(meant) > 0:
		return usage(cmd, fmt.Errorf("unknown command %q; use %s", name, either(meant)))
	case cmd.HasParent():
		return usage(cmd, fmt.Errorf("unknown command %q; there are %s", name, either(namesBelow(cmd))))
	}
	return usage(cmd, fmt.Errorf("unknown command %q", name))
}

// called returns the paths of the commands below cmd that have the name.
func called(cmd *cobra.Command, name string) (paths []string) {
	for _, c := range cmd.Commands() {
		if c.Name() == name {
			paths = append(paths, c.CommandPath())
		}
		paths = append(paths, called(c, name)...)
	}
	return paths
}

// namesBelow returns the names of a group's commands.
func namesBelow(group *cobra.Command) (names []string) {
	for _, c := range group.Commands() {
		names = append(names, c.Name())
	}
	return names
}

// either returns names as a choice: a, b or c.
func either(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}
