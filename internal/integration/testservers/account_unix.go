//go:build unix

package testservers

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// account returns the account for servers that refuse to run as root: postgres or nobody if this
// process runs as root, and otherwise its own account.
func account() (uid, gid uint32, err error) {
	if os.Geteuid() != 0 {
		return uint32(os.Geteuid()), uint32(os.Getegid()), nil
	}

	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return 0, 0, fmt.Errorf("an account to run a server in place of root: %w", err)
	}

	u, err := strconv.ParseUint(account.Uid, 10, 32)
	if err != nil {
		return 0, 0, err
	}
	g, err := strconv.ParseUint(account.Gid, 10, 32)
	if err != nil {
		return 0, 0, err
	}

	return uint32(u), uint32(g), nil
}

// unprivileged makes a command run as postgres or nobody if this process runs as root.
func unprivileged(cmd *exec.Cmd) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, gid, err := account()
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	// This process's own directory may be closed to that account.
	cmd.Dir = os.TempDir()
	return nil
}
