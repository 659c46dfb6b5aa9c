//go:build unix

package main

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"time"
)

// unprivileged makes a command run as postgres or nobody if this process runs as root, because
// Postgres refuses to run as root. It makes that account the owner of the directory.
func unprivileged(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	if os.Geteuid() != 0 {
		return nil
	}

	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return err
	}

	uid, err := strconv.Atoi(account.Uid)
	if err != nil {
		return err
	}
	gid, err := strconv.Atoi(account.Gid)
	if err != nil {
		return err
	}

	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(dir, uid, gid)
}

// processCPU returns the processor time of this process.
func processCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
