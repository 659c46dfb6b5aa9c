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

// Shield keeps the signals of a terminal, such as Ctrl-C, from a child that has not started yet, so
// that the parent decides when the child ends. On systems other than Unix it does nothing.
func Shield(child *exec.Cmd) {
	child.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
}
