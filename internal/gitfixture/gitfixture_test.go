package gitfixture_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/skeinq/skein/internal/gitfixture"
)

// write makes a fixture and returns its directory.
func write(t *testing.T, o gitfixture.Options) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "repo")
	if err := gitfixture.Write(t.Context(), dir, o); err != nil {
		t.Fatal(err)
	}
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := gitfixture.Git(t.Context(), dir, args...).Output()
	if err != nil {
		t.Fatalf("git %v: %v", args, err)
	}
	return string(out)
}

func TestWriteDependsOnOptionsAlone(t *testing.T) {
	head := func(seed uint64) string {
		return git(t, write(t, gitfixture.Options{Seed: seed, Commits: 50}), "rev-parse", "HEAD")
	}
	if a, b := head(1), head(1); a != b {
		t.Errorf("one seed, two histories: %s and %s", a, b)
	}
	if a, b := head(1), head(2); a == b {
		t.Errorf("two seeds, one history: %s", a)
	}
}

func TestWriteIsAValidRepository(t *testing.T) {
	for _, o := range []gitfixture.Options{{Commits: 100}, {Commits: 100, SHA256: true}} {
		dir := write(t, o)
		git(t, dir, "fsck", "--strict", "--no-dangling")
		if got := strings.TrimSpace(git(
			t, dir, "rev-list", "--first-parent", "--count", "HEAD",
		)); got != strconv.Itoa(o.Commits) {
			t.Errorf("%+v: %s first-parent commits", o, got)
		}
	}
}

func TestWriteRefusesDirectoryInUse(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	err := gitfixture.Write(t.Context(), dir, gitfixture.Options{Commits: 1})
	if err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("got %v", err)
	}
}

// TestWriteHasWhatIsHard holds the fixture to what its package comment claims.
func TestWriteHasWhatIsHard(t *testing.T) {
	dir := write(t, gitfixture.Options{Commits: 600})
	has := map[string]bool{
		"merges":              git(t, dir, "rev-list", "--first-parent", "--min-parents=2", "HEAD") != "",
		"octopus merges":      git(t, dir, "rev-list", "--first-parent", "--min-parents=3", "HEAD") != "",
		"unrelated histories": strings.Count(git(t, dir, "rev-list", "--max-parents=0", "HEAD"), "\n") > 1,
		"merges of their own": git(t, dir, "log", "--first-parent",
			"--min-parents=2", "-c", "--raw", "--format=", "HEAD") != "",
		"merges of nothing": strings.Contains(
			git(t, dir, "log", "--first-parent", "-m", "--merges", "--raw", "--format=tformat:x", "HEAD"),
			"x\nx",
		),
		"renames": strings.Contains(git(t, dir, "log", "--first-parent", "--raw", "-M100%", "--format=", "HEAD"),
			" R100\t"),
	}

	log := git(t, dir, "log", "--first-parent", "-m", "--raw", "--no-renames", "-z", "--format=", "HEAD")
	for name, part := range map[string]string{
		"mode changes": ":100644 100755 ", "links made of files": ":100644 120000 ",
		"submodules": ":000000 160000 ", "submodules made of files": ":100644 160000 ",
		"deletes": " D\x00", "newlines": "new\nline", "tabs": "tab\there", "quotes": `quo"te`,
		"leading dashes": "\x00-leading", "not UTF-8": "\xe9\xff", "unicode": "日本",
		"directories made of files": "/inside",
	} {
		has[name] = strings.Contains(log, part)
	}
	has["long names"], has["files that come back"] = oddPaths(log)

	for name, ok := range has {
		if !ok {
			t.Errorf("the fixture has no %s", name)
		}
	}
	if utf8.ValidString(log) {
		t.Error("all names are UTF-8")
	}
}

// oddPaths looks for a path too long for an id, and for one added twice.
func oddPaths(log string) (long, back bool) {
	added := map[string]int{}
	fields := strings.Split(log, "\x00")
	for i := 0; i+1 < len(fields); i += 2 {
		if strings.HasSuffix(fields[i], " A") {
			added[fields[i+1]]++
		}
	}
	for path, times := range added {
		long = long || len(path) > 512
		back = back || times > 1
	}
	return long, back
}

// TestGitIsIsolated holds Git to leaving out what leads git elsewhere.
func TestGitIsIsolated(t *testing.T) {
	t.Setenv("GIT_DIR", "/elsewhere")
	env := gitfixture.Git(t.Context(), t.TempDir(), "version").Env
	if i := slices.Index(env, "GIT_DIR=/elsewhere"); i >= 0 {
		t.Errorf("the environment leads git to %s", env[i])
	}
}
