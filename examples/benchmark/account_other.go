//go:build !unix

package main

import "os/exec"

// unprivileged leaves a command the account that it has.
func unprivileged(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	return nil
}
