//go:build !unix

package main

import (
	"os/exec"
	"time"
)

// unprivileged does not change the account of a command.
func unprivileged(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	return nil
}

// processCPU returns 0, because the processor time is unknown on this system.
func processCPU() time.Duration { return 0 }
