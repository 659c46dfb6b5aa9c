package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// summaries returns each change in few words: its kind, path and modes.
func summaries(changes []change) []string {
	var list []string
	for _, c := range changes {
		list = append(list, strings.TrimSpace(c.Kind+" "+c.Path+" "+c.Old.Mode+">"+c.New.Mode))
	}
	return list
}

func TestLogOfRealGit(t *testing.T) {
	for _, test := range []struct {
		name  string
		build func(w *worktree)
		want  []string
	}{
		{"a root commit", func(w *worktree) {
			w.write("dir/a", "1")
			w.write("b", "1")
			w.commit()
		}, []string{"A b >100644", "A dir/a >100644"}},
		{"a commit without changes", func(w *worktree) {
			w.write("a", "1")
			w.commit()
			w.commit()
			w.write("a", "2")
			w.commit()
		}, []string{"A a >100644", "M a 100644>100644"}},
		{"a rename", func(w *worktree) {
			w.write("a", "1")
			w.commit()
			w.git("mv", "a", "b")
			w.commit()
		}, []string{"A a >100644", "D a 100644>", "A b >100644"}},
		{"modes, links and submodules", func(w *worktree) {
			w.write("a", "1")
			head := w.commit()
			w.git("update-index", "--chmod=+x", "a")
			w.git("commit", "--quiet", "--message=x")
			w.git("rm", "--quiet", "--force", "a")
			if err := os.Symlink("elsewhere", filepath.Join(w.dir, "a")); err != nil {
				w.t.Fatal(err)
			}
			w.commit()
			w.submodule("sub", head)
			w.submodule("sub", w.git("rev-parse", "HEAD"))
		}, []string{"A a >100644", "M a 100644>100755", "T a 100755>120000", "A sub >160000", "M sub 160000>160000"}},
		{"a submodule that .gitmodules says to ignore", func(w *worktree) {
			w.write(".gitmodules", "[submodule \"sub\"]\n\tpath = sub\n\turl = ./x\n\tignore = all\n")
			w.submodule("sub", w.commit())
		}, []string{"A .gitmodules >100644", "A sub >160000"}},
		{"odd names", func(w *worktree) {
			w.write("-dash", "1")
			w.write("new\nline\t\"q\"", "1")
			w.write("not\xffutf8", "1")
			w.commit()
		}, []string{"A -dash >100644", "A new\nline\t\"q\" >100644", "A not\xffutf8 >100644"}},
		{"a merge that changes something of its own", func(w *worktree) {
			w.write("a", "1")
			w.commit()
			w.git("checkout", "--quiet", "-b", "side")
			w.write("side", "1")
			w.commit()
			w.git("checkout", "--quiet", "main")
			w.write("main", "1")
			w.commit()
			w.git("merge", "--quiet", "--no-ff", "--no-commit", "side")
			w.write("a", "2")
			w.commit()
		}, []string{"A a >100644", "A main >100644", "M a 100644>100644", "A side >100644"}},
		{"a detached HEAD", func(w *worktree) {
			w.write("a", "1")
			w.git("checkout", "--quiet", "--detach", w.commit())
			w.write("b", "1")
			w.commit()
		}, []string{"A a >100644", "A b >100644"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorktree(t)
			test.build(w)
			changes, err := logOf(t.Context(), w.dir)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, summaries(changes)); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			checkReplay(t, w.dir)
		})
	}
}

// checkReplay runs the command on a repository.
func checkReplay(t *testing.T, dir string, args ...string) (stdout string) {
	t.Helper()
	out, complaints, status := runCommand(t.Context(), append([]string{"-repo", dir}, args...)...)
	if status != 0 || !strings.Contains(out, "\nindex equals git ls-tree -r HEAD: ") {
		t.Errorf("exit status %d\n%s%s", status, out, complaints)
	}
	return out
}

func runCommand(ctx context.Context, args ...string) (stdout, stderr string, status int) {
	var out, complaints bytes.Buffer
	status = run(ctx, args, &out, &complaints)
	return out.String(), complaints.String(), status
}

// TestUserSettings replays with a user's configuration and environment that would change git's
// output. Each setting stays for those after it.
func TestUserSettings(t *testing.T) {
	w := newWorktree(t)
	w.write("a", "1")
	w.write("dir/b", "1")
	w.commit()
	w.git("checkout", "--quiet", "-b", "side")
	w.write("side", "1")
	w.commit()
	w.git("checkout", "--quiet", "main")
	w.git("merge", "--quiet", "--no-ff", "--message=x", "side")
	w.sign()
	for _, setting := range []string{
		"log.showSignature=true", "log.diffMerges=combined", "log.diffMerges=off", "diff.relative=true",
		"diff.ignoreSubmodules=all", "diff.renames=copies", "color.ui=always", "log.showRoot=false", "core.abbrev=4",
	} {
		name, value, _ := strings.Cut(setting, "=")
		w.git("config", "--replace-all", name, value)
		t.Run(setting, func(t *testing.T) {
			out := checkReplay(t, filepath.Join(w.dir, "dir"))
			if !strings.Contains(out, " 3 events\n") {
				t.Errorf("not 3 events:\n%s", out)
			}
		})
	}
	t.Run("GIT_DIR of another repository", func(t *testing.T) {
		t.Setenv("GIT_DIR", newWorktree(t).dir)
		checkReplay(t, w.dir)
	})
}

func TestOtherRepositories(t *testing.T) {
	w := newWorktree(t)
	for _, text := range []string{"1", "2", "3"} {
		w.write("a", text)
		w.commit()
	}
	t.Run("bare", func(t *testing.T) {
		dir := t.TempDir()
		w.git("clone", "--quiet", "--bare", w.dir, dir)
		checkReplay(t, dir)
	})
	t.Run("shallow", func(t *testing.T) {
		dir := t.TempDir()
		w.git("clone", "--quiet", "--depth=2", "file://"+w.dir, dir)
		out, complaints, status := runCommand(t.Context(), "-repo", dir)
		if status != 0 || !strings.Contains(out, " 2 events\n") || !strings.Contains(complaints, "shallow clone") {
			t.Errorf("exit status %d\n%s%s", status, out, complaints)
		}
	})
	t.Run("of SHA-256", func(t *testing.T) {
		w := newWorktree(t, "--object-format=sha256")
		w.write("a", "1")
		w.commit()
		checkReplay(t, w.dir)
	})
	t.Run("without commits", func(t *testing.T) {
		out, complaints, status := runCommand(t.Context(), "-repo", newWorktree(t).dir)
		if status != 0 || !strings.Contains(out, "has no commits yet") {
			t.Errorf("exit status %d\n%s%s", status, out, complaints)
		}
	})
}

func TestRefusals(t *testing.T) {
	lost := newWorktree(t)
	lost.commit()
	lost.git("symbolic-ref", "HEAD", "refs/heads/gone")
	for _, test := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"no repository", []string{"-repo", t.TempDir()}, exitFailed, "not a git repository"},
		{"no directory", []string{"-repo", filepath.Join(t.TempDir(), "absent")}, exitFailed, "No such file or directory"},
		{"a HEAD that names no commit", []string{"-repo", lost.dir}, exitFailed, "HEAD names no commit"},
		{"an argument", []string{"dir"}, exitUsage, "-repo"},
		{"no lanes", []string{"-lanes", "0"}, exitUsage, "at least 1"},
		{"nodes that share no memory", []string{"-nodes", "2"}, exitUsage, "memory"},
		{"fewer than no nodes", []string{"-nodes", "-1", "-store", "redis://localhost"}, exitUsage, "negative"},
		{"kills before the start", []string{"-kill", "-1s"}, exitUsage, "negative"},
		{"a share above 1", []string{"-slow", "2"}, exitUsage, "share"},
		{"a share that is no number", []string{"-fail", "NaN"}, exitUsage, "share"},
		{"nothing is ever done", []string{"-fail", "0.5", "-panic", "0.5"}, exitUsage, "nothing is ever done"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, complaints, status := runCommand(t.Context(), test.args...)
			if status != test.status || !strings.Contains(complaints, test.want) || out != "" {
				t.Errorf("exit status %d, want %d with %q\n%s%s", status, test.status, test.want, out, complaints)
			}
		})
	}
	t.Run("no git", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, complaints, status := runCommand(t.Context(), "-repo", lost.dir)
		if status != exitFailed || !strings.Contains(complaints, "install git") {
			t.Errorf("exit status %d\n%s", status, complaints)
		}
	})
}

func TestDamagedRepository(t *testing.T) {
	w := newWorktree(t)
	w.write("a", "1")
	w.commit()
	w.write("b", "1")
	w.commit()
	tree := w.git("rev-parse", "HEAD~1^{tree}")
	if err := os.Remove(filepath.Join(w.dir, ".git", "objects", tree[:2], tree[2:])); err != nil {
		t.Fatal(err)
	}
	out, _, status := runCommand(t.Context(), "-repo", w.dir)
	if status != exitFailed || !strings.Contains(out, "ended early: git says: ") {
		t.Errorf("exit status %d\n%s", status, out)
	}
}

func TestStreamStopsGit(t *testing.T) {
	w := newWorktree(t)
	w.write("a", "1")
	w.commit()
	repo, err := openRepository(t.Context(), w.dir)
	if err != nil {
		t.Fatal(err)
	}
	enough := errors.New("enough")
	if err := repo.log(t.Context(), func(change, int64) error { return enough }); !errors.Is(err, enough) {
		t.Errorf("got %v, want %v", err, enough)
	}
}
