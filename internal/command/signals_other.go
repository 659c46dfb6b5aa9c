//go:build !unix

package command

import (
	"os"
	"os/exec"
)

func dumpSignals() []os.Signal { return nil }

// Shield keeps the signals of a terminal, such as Ctrl-C, from a child that has not started yet, so
// that the parent decides when the child ends. On systems other than Unix it does nothing.
func Shield(*exec.Cmd) {}
