package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// moduleFiles are a module whose tests end in every way there is. Once passes from its second run
// on.
var moduleFiles = map[string]string{
	"go.mod": "module example.com/m\n\ngo 1.26\n",
	"good/good_test.go": `package good

import "testing"

func TestQuiet(t *testing.T) { t.Log("a passing test prints nothing") }
`,
	"bad/bad_test.go": `package bad

import "testing"

func TestParent(t *testing.T) {
	t.Run("fine", func(t *testing.T) { t.Log("a passing subtest prints nothing") })
	t.Run("wrong sum", func(t *testing.T) { t.Errorf("1 + 1 is 3, not 2") })
}
`,
	"once/once_test.go": `package once

import (
	"os"
	"testing"
)

func TestOnce(t *testing.T) {
	if _, err := os.Stat("ran"); err == nil {
		return
	}
	if err := os.WriteFile("ran", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Error("the first run fails")
}
`,
	"panics/panics_test.go": `package panics

import "testing"

func TestPanics(t *testing.T) { panic("out of order") }
`,
	"broken/broken_test.go": `package broken

func missing() { undefined() }
`,
}

// newModule writes those of the module's packages that are named, and returns its directory.
func newModule(t *testing.T, packages ...string) string {
	t.Helper()
	dir := t.TempDir()

	for name, content := range moduleFiles {
		first, _, _ := strings.Cut(name, "/")
		if name != "go.mod" && !slices.Contains(packages, first) {
			continue
		}

		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// holds reports as errors which of the texts are not in the output.
func holds(t *testing.T, output string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(output, text) {
			t.Errorf("the output lacks %q:\n%s", text, output)
		}
	}
}

func TestPassingTestsPrintOneLineAPackage(t *testing.T) {
	var out strings.Builder
	if failures := parseStage(newModule(t, "good") + " -count=1 ./...").run(&out); len(failures) > 0 {
		t.Fatalf("failures %+v", failures)
	}
	if got := out.String(); !strings.HasPrefix(got, "ok  \texample.com/m/good\t") || strings.Count(got, "\n") != 1 {
		t.Errorf("output %q", got)
	}
}

func TestFailuresAreSummedUpWithACommandForEach(t *testing.T) {
	var out strings.Builder
	dir := newModule(t, "bad", "good", "panics", "broken")
	failures := parseStage(dir + " -short -skip ^TestNever$ ./...").run(&out)

	if len(failures) != 3 {
		t.Fatalf("%d failures, want 3: %+v", len(failures), failures)
	}
	if strings.Contains(out.String(), "prints nothing") {
		t.Errorf("the output has that of a passing test:\n%s", out.String())
	}

	text := summary(failures)
	holds(t, text,
		"FAIL example.com/m/bad TestParent/wrong_sum", "1 + 1 is 3, not 2",
		"go -C "+dir+" test -short -count=1 -run '^TestParent$/^wrong_sum$' example.com/m/bad",
		"FAIL example.com/m/panics", "FAIL example.com/m/broken", "undefined")
	holds(t, out.String(), "panic: out of order")

	if lines := strings.Count(text, "\n"); lines > 30 {
		t.Errorf("the summary has %d lines, want at most 30:\n%s", lines, text)
	}
}

func TestATestThatPassesAloneIsFlaky(t *testing.T) {
	var out strings.Builder
	s := parseStage(newModule(t, "once", "bad") + " ./...")
	failures := repeatAll(&out, s, s.run(&out))
	if len(failures) != 1 || failures[0].test != "TestParent/wrong_sum" {
		t.Errorf("what is left has failed twice; got %+v", failures)
	}
	holds(t, out.String(), "FLAKY example.com/m/once TestOnce",
		"the first run fails", "failed again, alone: TestParent/wrong_sum")
}

func TestManyFailuresAreNotRepeated(t *testing.T) {
	var out strings.Builder
	s := parseStage(newModule(t, "once") + " ./...")
	failures := slices.Repeat(s.run(&out), mostRepeats+1)
	if left := repeatAll(&out, s, failures); len(left) != len(failures) || strings.Contains(out.String(), "FLAKY") {
		t.Errorf("%d of %d failures are left:\n%s", len(left), len(failures), out.String())
	}
}

func TestAStageThatCannotStartFails(t *testing.T) {
	var out strings.Builder
	if failures := parseStage(filepath.Join(t.TempDir(), "missing") + " ./...").run(&out); len(failures) != 1 {
		t.Errorf("failures %+v, want 1", failures)
	}
}

func TestCommandsCanBeTyped(t *testing.T) {
	for _, c := range []struct{ args, test, want string }{
		{
			"d -race -run ^TestA -skip TestB ./...",
			"TestA/b(c)",
			`go -C d test -race -count=1 -run '^TestA$/^b\(c\)$' p`,
		},
		{"d -count=1 .", "TestIt's", `go -C d test -count=1 -run '^TestIt.s$' p`},
		{"d .", "", `go -C d test -count=1 p`},
	} {
		if got := parseStage(c.args).alone("p", c.test).shell(); got != c.want {
			t.Errorf("%q %s: got %s, want %s", c.args, c.test, got, c.want)
		}
	}
}
