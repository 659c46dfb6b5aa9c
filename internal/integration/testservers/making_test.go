package testservers_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/integration/testservers"
)

// The signal that ends a Postgres comes while there is none yet: initdb runs, in a
// shell that ignores it.
func TestPostgresEndsAlthoughInitdbStillRan(t *testing.T) {
	t.Parallel()
	real, err := localProgram("initdb")
	if err != nil {
		testservers.Missing(t, fmt.Errorf("no Postgres on this machine: %w", err))
	}

	dir := openDirectory(t)
	begun, proceed, servers := filepath.Join(dir, "begun"), filepath.Join(dir, "proceed"), filepath.Join(dir, "servers")
	slow := fmt.Sprintf("#!/bin/sh\ncase $1 in --help) exec %[1]q --help ;; esac\n"+
		": >%[2]q\nuntil [ -e %[3]q ]; do sleep 0.1; done\nexec %[1]q \"$@\"\n",
		real, begun, proceed)
	if err := os.WriteFile(filepath.Join(dir, "initdb"), []byte(slow), 0o755); err != nil {
		t.Fatal(err)
	}
	allow(t, filepath.Join(dir, "initdb"))

	process := exec.Command(os.Args[0], "-test.run=^TestServerEndsWithTheProcessThatStartedIt$")
	process.Env = append(os.Environ(), starter+"=Postgres", "SKEIN_TEST_VIA=local", "TMPDIR="+servers,
		"PATH="+strings.Join([]string{dir, filepath.Dir(real), os.Getenv("PATH")}, string(filepath.ListSeparator)))
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}

	until(t, "initdb runs", func(context.Context) bool { return exists(begun) })
	if err := process.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	process.Wait()
	if err := os.WriteFile(proceed, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	// A server's directory goes when it has ended.
	t.Cleanup(func() { killServers(t, servers) })
	until(t, "the server ends and its directory goes", func(context.Context) bool {
		left, err := filepath.Glob(filepath.Join(servers, "*"))
		return err == nil && len(left) == 0
	})
}

// localProgram is the path of a program of Postgres.
func localProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name); len(found) > 0 {
		return found[len(found)-1], nil
	}
	return "", err
}

// openDirectory is a directory in which every account may write, with another one,
// servers, in it.
func openDirectory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "testservers")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})

	servers := filepath.Join(dir, "servers")
	if err := os.Mkdir(servers, 0o755); err != nil {
		t.Fatal(err)
	}

	allow(t, dir)
	allow(t, servers)
	return dir
}

// allow lets every account do everything, whatever the umask is.
func allow(t *testing.T, path string) {
	t.Helper()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// killServers kills the servers whose directories are left.
func killServers(t *testing.T, servers string) {
	t.Helper()
	left, _ := filepath.Glob(filepath.Join(servers, "*", "data", "postmaster.pid"))

	for _, path := range left {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Error(err)
			continue
		}

		line, _, _ := strings.Cut(string(text), "\n")
		pid, err := strconv.Atoi(line)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}

		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill()
		}
	}
}
