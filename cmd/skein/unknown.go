package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// unknown returns the error for an unknown command. It names the commands that may be meant or,
// below a group, all commands of the group.
func unknown(cmd *cobra.Command, name string) error {
	elsewhere, near := called(cmd.Root(), name), nearest(cmd, name)
	meant := elsewhere
	if len(elsewhere) == 0 || cmd.HasParent() && len(near) > 0 {
		meant = near
	}
	switch {
	case len(meant) > 0:
		return usage(cmd, fmt.Errorf("unknown command %q; use %s", name, either(meant)))
	case cmd.HasParent():
		return usage(cmd, fmt.Errorf("unknown command %q; the commands are %s", name, either(namesBelow(cmd))))
	}
	return usage(cmd, fmt.Errorf("unknown command %q", name))
}

// nearest returns the paths of the commands of cmd whose names are similar to the name.
func nearest(cmd *cobra.Command, name string) (paths []string) {
	cmd.SuggestionsMinimumDistance = 1 // with the default, 2, most names of two letters would match
	for _, near := range cmd.SuggestionsFor(name) {
		paths = append(paths, cmd.CommandPath()+" "+near)
	}
	return paths
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
