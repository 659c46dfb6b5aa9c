//go:build unix

package command

import (
	"os"
	"os/exec"
	"syscall"
)

func dumpSignals() []os.Signal {
	return []os.Signal{syscall.SIGQUIT, syscall.SIGTTIN}
}

// Shield keeps signals typed at a terminal from a child that is yet to start:
// the parent decides when it ends. Elsewhere than on Unix it does nothing.
func Shield(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
