package testservers

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Disk is a file system in memory with a fixed size, on which a server of this machine
// can run out of room.
type Disk struct {
	// Path is its directory, which belongs to the account that runs servers.
	Path string
}

// SmallDisk mounts a disk with the given number of megabytes. Take it before its servers, since
// they must end first. It is unmounted when the test has ended. On a machine that may not mount
// one the test is skipped, except in CI.
func SmallDisk(t testing.TB, megabytes int) *Disk {
	t.Helper()
	if os.Getenv("SKEIN_TEST_VIA") == "docker" {
		Missing(t, errors.New("a disk of this machine is of no use to servers in Docker"))
	}

	path, err := os.MkdirTemp("", "skein-disk-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.Remove(path); err != nil {
			t.Error(err)
		}
	})

	uid, gid, err := account()
	if err != nil {
		t.Fatal(err)
	}

	options := fmt.Sprintf("size=%dm,mode=0700,uid=%d,gid=%d", megabytes, uid, gid)
	if err := asRoot("mount", "-t", "tmpfs", "-o", options, "tmpfs", path); err != nil {
		Missing(t, fmt.Errorf(
			"a small disk is a tmpfs; to mount it, run the tests as root or with a sudo that asks for no password: %w",
			err))
	}

	t.Cleanup(func() {
		if err := asRoot("umount", path); err != nil {
			t.Error(err)
		}
	})

	return &Disk{Path: path}
}

// Grow gives the disk the given number of megabytes in all.
func (d *Disk) Grow(t testing.TB, megabytes int) {
	t.Helper()
	if err := asRoot("mount", "-o", fmt.Sprintf("remount,size=%dm", megabytes), d.Path); err != nil {
		t.Fatal(err)
	}
}

// asRoot runs a command as root.
func asRoot(command ...string) error {
	if os.Geteuid() != 0 {
		command = append([]string{"sudo", "-n"}, command...)
	}
	if output, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, output)
	}
	return nil
}
