//go:build !unix

package main

import (
	"os/exec"
	"time"
)

// unprivileged leaves a command the account that it has.
func unprivileged(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	return nil
}

// processCPU returns 0: it is unknown.
func processCPU() time.Duration { return 0 }
