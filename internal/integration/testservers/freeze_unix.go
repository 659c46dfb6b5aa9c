//go:build unix

package testservers

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Freeze makes a server of this machine hang: its connections stay open, new ones are accepted, and
// nothing is answered until thaw is called. It skips the test if servers run elsewhere.
func Freeze(t testing.TB, server *redis.Client) (thaw func()) {
	t.Helper()
	if _, err := exec.LookPath(redisServer().binary); err != nil || os.Getenv("SKEIN_TEST_VIA") == "docker" {
		Missing(t, errors.New("only a server that is a process of this machine can be made to hang"))
	}

	info, err := server.Info(t.Context(), "server").Result()
	if err != nil {
		t.Fatal(err)
	}

	_, rest, _ := strings.Cut(info, "process_id:")
	rest, _, _ = strings.Cut(rest, "\r\n")
	pid, err := strconv.Atoi(rest)
	if err != nil || pid <= 1 {
		t.Fatalf("the server reports the process id %q", rest)
	}
	return FreezeProcess(t, pid)
}

// FreezeProcess makes a process of this machine stand still until thaw is called. It skips the test
// on a system where no process can.
func FreezeProcess(t testing.TB, pid int) (thaw func()) {
	t.Helper()

	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}

	return func() {
		if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
			t.Error(err)
		}
	}
}
