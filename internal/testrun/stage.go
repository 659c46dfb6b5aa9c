package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// stage is one go test command in a module.
type stage struct {
	dir  string
	args []string
}

func parseStage(words string) stage {
	fields := strings.Fields(words)
	return stage{dir: fields[0], args: fields[1:]}
}

func (s stage) String() string { return "go -C " + s.dir + " test " + strings.Join(s.args, " ") }

// alone returns the stage that runs one test of one package, or a whole package if test is "". It
// keeps the flags, except those that select packages and tests.
func (s stage) alone(pkg, test string) stage {
	var args []string
	for i := 0; i < len(s.args); i++ {
		switch arg := s.args[i]; {
		case arg == "-run" || arg == "-skip":
			i++ // Its pattern.
		case strings.HasPrefix(arg, "./") || arg == ".":
		default:
			args = append(args, arg)
		}
	}

	if !slices.Contains(args, "-count=1") {
		args = append(args, "-count=1")
	}
	if test != "" {
		args = append(args, "-run", pattern(test))
	}

	return stage{s.dir, append(args, pkg)}
}

// pattern returns a pattern that matches only the test with this name, such as TestA/b.
func pattern(test string) string {
	parts := strings.Split(test, "/")
	for i, part := range parts {
		parts[i] = "^" + quote(part) + "$"
	}
	return strings.Join(parts, "/")
}

// quote is regexp.QuoteMeta for a pattern that stands within single quotes in a shell: it replaces
// a single quote by a dot.
func quote(name string) string {
	var b strings.Builder
	for _, r := range name {
		switch {
		case r == '\'':
			b.WriteByte('.')
		case strings.ContainsRune(`\.+*?()|[]{}^$`, r):
			b.WriteByte('\\')
			fallthrough
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// shell returns the command as a person types it in a shell.
func (s stage) shell() string {
	words := []string{"go", "-C", s.dir, "test"}
	for _, arg := range s.args {
		if strings.ContainsAny(arg, `^$|*?()[]{}\ "#&;<>~`) {
			arg = "'" + arg + "'"
		}
		words = append(words, arg)
	}
	return strings.Join(words, " ")
}

// run runs the stage, prints a line for each package and the output of failed tests to w, and
// returns the failures.
func (s stage) run(w io.Writer) []failure {
	cmd := exec.Command("go", append([]string{"-C", s.dir, "test", "-json"}, s.args...)...)
	cmd.Stderr = os.Stderr

	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return []failure{{stage: s, output: []string{err.Error()}}}
	}

	r := report{stage: s, w: w}
	readErr := r.read(out)
	err = errors.Join(readErr, cmd.Wait())
	if err != nil && len(r.failures) == 0 {
		r.fail(failure{stage: s, output: []string{fmt.Sprintf("go test: %v", err)}})
	}

	return r.failures
}

// mostRepeats is the largest number of failed tests that run once more. If more tests fail, the
// failures are not by chance.
const mostRepeats = 10

// repeatAll runs each failed test once more, alone, and returns those that failed again.
func repeatAll(w io.Writer, s stage, failures []failure) []failure {
	if len(failures) > mostRepeats {
		return failures
	}

	return slices.DeleteFunc(failures, func(f failure) bool {
		if f.test == "" { // The package was not built, or ended during a test.
			return false
		}

		var again strings.Builder
		r := recorder{w: &again}
		if failed := s.alone(f.pkg, f.test).run(&r); len(failed) > 0 || !r.ran {
			fmt.Fprintf(w, "failed again, alone: %s\n%s", f.test, again.String())
			return false
		}

		fmt.Fprintf(w, "FLAKY %s %s\n-- it failed with:\n%s-- and passed alone:\n%s",
			f.pkg, f.test, strings.Join(f.output, ""), again.String())
		return true
	})
}

// recorder notes whether a package with tests has passed.
type recorder struct {
	w   io.Writer
	ran bool
}

func (r *recorder) Write(p []byte) (int, error) {
	if line := string(p); strings.HasPrefix(line, "ok") && !strings.Contains(line, "[no tests to run]") {
		r.ran = true
	}
	return r.w.Write(p)
}
