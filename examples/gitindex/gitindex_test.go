package main

import (
	"os/exec"
	"strings"
	"testing"
)

// hostile is a history for git fast-import: odd names, a file that becomes a directory, a deleted
// file, a symbolic link, and a merge with a change of its own.
const hostile = `commit refs/heads/main
mark :1
committer a <a@b> 1 +0000
data 1
a
M 644 inline "commit 0000\n:100644"
data 1
a
M 644 inline "\377% name"
data 1
b
M 644 inline file
data 1
c
commit refs/heads/side
mark :2
committer a <a@b> 2 +0000
data 1
b
from :1
D file
M 755 inline file/below
data 1
d
commit refs/heads/main
mark :3
committer a <a@b> 3 +0000
data 1
c
from :1
merge :2
D file
M 120000 inline file/below
data 1
e
D "\377% name"
`

func TestAHistoryIsReplayedInOrder(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q", "--bare", "-b", "main"}, {"fast-import", "--quiet"}} {
		cmd := exec.Command("git", append([]string{"-C", dir}, args...)...)
		cmd.Stdin = strings.NewReader(hostile)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v: %s", args, err, out)
		}
	}

	var out strings.Builder
	if status := run(t.Context(), []string{"-repo", dir, "-fail", "0.5"}, &out, t.Output()); status != 0 {
		t.Errorf("exit status %d", status)
	}
	for _, want := range []string{"6 pushed, 6 applied", "broken links  0, overlaps 0", "HEAD: 2 paths"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the report lacks %q:\n%s", want, &out)
		}
	}
}

// The index notices an event that was overtaken, and a file that it lacks.
func TestFaultsAreFound(t *testing.T) {
	x := newIndex(0)
	for _, e := range []Event{
		{Position: 1, New: "a"}, {Position: 3, Old: "b", New: "c"}, {Position: 2, Old: "a", New: "b"},
	} {
		if err := x.handle(t.Context(), "path", []Event{e}); err != nil {
			t.Fatal(err)
		}
	}
	err := x.compare(map[string]string{"path": "b", "other": "d"})
	for _, want := range []string{
		`event 3 of commit  expects "b", and the index holds "a"`, `HEAD has "b", the index "c"`,
		`HEAD has "d", the index nothing`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the fault %q is not found in: %v", want, err)
		}
	}
}
