// Package gitfixture writes git repositories that are hard to replay: merges with changes of their
// own, unrelated histories, renames, changed modes, symbolic links, submodules, deletes, files that
// become directories, and names that few programs expect. The history depends on the options alone.
package gitfixture

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// DefaultCommits is the length of the first-parent history by default. It has some tens of
// thousands of file changes.
const DefaultCommits = 3000

// Options describe the repository to write. The zero value is a repository of DefaultCommits.
type Options struct {
	// Seed chooses the history. The same options give the same commit hashes.
	Seed uint64
	// Commits is the length of the first-parent history. 0 is DefaultCommits.
	Commits int
	// SHA256 names objects by SHA-256 instead of SHA-1.
	SHA256 bool
}

// Write makes a bare repository at dir, which must be absent or empty, with HEAD
// on the branch main. It needs git.
func Write(ctx context.Context, dir string, o Options) error {
	format := "sha1"
	if o.SHA256 {
		format = "sha256"
	}

	if err := makeEmpty(dir); err != nil {
		return fmt.Errorf("write a repository: %w", err)
	}

	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--object-format=" + format},
		{"symbolic-ref", "HEAD", "refs/heads/main"},
	} {
		if err := run(Git(ctx, dir, args...)); err != nil {
			return err
		}
	}

	return fastImport(ctx, dir, o)
}

// makeEmpty creates dir if it does not exist. A directory that is not empty is an error.
func makeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s is not empty; name a new directory", dir)
	}
	return nil
}

// fastImport streams the history into git.
func fastImport(ctx context.Context, dir string, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	cmd := Git(ctx, dir, "fast-import", "--quiet", "--done")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return err
	}

	// A pipe does not hold the whole history, so Git reads it while it is written.
	written := make(chan error, 1)
	go func() {
		w := bufio.NewWriter(stdin)
		newHistory(w, o).write()
		err := w.Flush()
		stdin.Close()
		written <- err
	}()

	if err := run(cmd); err != nil {
		return err
	}
	return <-written
}

// Git returns a git command in dir. It ignores the user's configuration and the GIT_ variables of
// the environment, and commits with a fixed name and date.
func Git(ctx context.Context, dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	// Without these settings git fast-import returns memory to the system and requests it again ten
	// thousand times. That takes most of its time where page faults are slow.
	cmd.Env = append(cmd.Env, "MALLOC_TOP_PAD_=33554432", "MALLOC_TRIM_THRESHOLD_=67108864")
	cmd.Env = append(cmd.Env, "LC_ALL=C", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_AUTHOR_DATE=1700000000 +0000",
		"GIT_COMMITTER_NAME=C", "GIT_COMMITTER_EMAIL=c@example.com", "GIT_COMMITTER_DATE=1700000000 +0000")
	return cmd
}

func run(cmd *exec.Cmd) error {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	return nil
}
