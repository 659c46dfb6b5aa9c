package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/gitfixture"
)

// worktree is a git repository with files.
type worktree struct {
	t   *testing.T
	dir string
}

// newWorktree makes one without commits, untouched by the settings and the environment of the user
// who runs the tests.
func newWorktree(t *testing.T, initArgs ...string) *worktree {
	t.Helper()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	t.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	w := &worktree{t: t, dir: t.TempDir()}
	w.git(append([]string{"init", "--quiet"}, initArgs...)...)
	w.git("symbolic-ref", "HEAD", "refs/heads/main")
	return w
}

func (w *worktree) git(args ...string) string {
	w.t.Helper()
	cmd := gitfixture.Git(w.t.Context(), w.dir, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		w.t.Fatalf("git %v: %v: %s", args, err, &stderr)
	}
	return strings.TrimSpace(string(out))
}

func (w *worktree) write(path, text string) {
	w.t.Helper()
	path = filepath.Join(w.dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// commit commits all files as they are, also if nothing changed.
func (w *worktree) commit() string {
	w.t.Helper()
	w.git("add", "--all")
	w.git("commit", "--quiet", "--allow-empty", "--message=x")
	return w.git("rev-parse", "HEAD")
}

// submodule records a commit at a path that has no files.
func (w *worktree) submodule(path, commit string) {
	w.t.Helper()
	w.git("update-index", "--add", "--cacheinfo", "160000,"+commit+","+path)
	w.git("commit", "--quiet", "--message=x")
}

// sign makes the last commit look signed, and git ask a program about it that
// complains.
func (w *worktree) sign() {
	w.t.Helper()
	program := filepath.Join(w.t.TempDir(), "gpg")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho bad signature >&2\nexit 1\n"), 0o755); err != nil {
		w.t.Fatal(err)
	}
	w.git("config", "gpg.program", program)
	header, message, _ := strings.Cut(w.git("cat-file", "commit", "HEAD"), "\n\n")
	signed := filepath.Join(w.t.TempDir(), "commit")
	signature := "\ngpgsig -----BEGIN PGP SIGNATURE-----\n x\n -----END PGP SIGNATURE-----\n\n"
	if err := os.WriteFile(signed, []byte(header+signature+message+"\n"), 0o644); err != nil {
		w.t.Fatal(err)
	}
	w.git("update-ref", "HEAD", w.git("hash-object", "-t", "commit", "-w", signed))
}
