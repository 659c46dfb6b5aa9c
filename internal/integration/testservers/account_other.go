//go:build !unix

package testservers

import "os/exec"

// unprivileged leaves a command to the account that runs this process.
func unprivileged(*exec.Cmd) error { return nil }
