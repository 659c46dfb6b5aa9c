//go:build !unix

package command

import (
	"os"
	"os/exec"
)

func dumpSignals() []os.Signal { return nil }

// Shield keeps signals typed at a terminal from a child that is yet to start:
// the parent decides when it ends. Elsewhere than on Unix it does nothing.
func Shield(*exec.Cmd) {}
