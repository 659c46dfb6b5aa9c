//go:build !unix

package testservers

import (
	"errors"
	"os/exec"
)

// account returns an error: accounts have no numbers on this system.
func account() (uid, gid uint32, err error) {
	return 0, 0, errors.New("accounts have no numbers on this machine")
}

// unprivileged leaves a command to the account that runs this process.
func unprivileged(*exec.Cmd) error { return nil }
