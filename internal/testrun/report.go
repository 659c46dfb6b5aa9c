package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is a line that go test -json prints for each step of a test; see go doc test2json.
type event struct {
	Action      string
	Package     string
	ImportPath  string // The package that was built, for the action build-output.
	Test        string
	Output      string
	FailedBuild string
}

// failure is a failed test, or a package that failed as a whole. Then test is "".
type failure struct {
	stage  stage
	pkg    string
	test   string
	output []string // Lines, with their line ends.
}

// report reads the events of a stage, prints them, and collects failures.
type report struct {
	stage    stage
	w        io.Writer
	outputs  map[string][]string // The output of each test that has not ended, by key.
	failures []failure
}

func key(pkg, test string) string { return pkg + " " + test }

// read reads events until the stage ends.
func (r *report) read(events io.Reader) error {
	r.outputs = map[string][]string{}
	lines := bufio.NewReader(events)

	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			r.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// line handles one line. It prints a line that is not an event, because such a line comes from the
// go command itself.
func (r *report) line(line string) {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
		fmt.Fprint(r.w, line)
		return
	}

	k := key(e.Package, e.Test)
	switch e.Action {
	case "build-output":
		k = key(e.ImportPath, "")
		r.outputs[k] = append(r.outputs[k], e.Output)
	case "output":
		r.output(e, k)
	case "pass", "skip":
		delete(r.outputs, k)
	case "fail":
		r.failed(e, k)
	}
}

// output keeps a test's output until the test has ended. It prints the line that reports that a
// package passed.
func (r *report) output(e event, k string) {
	switch {
	case e.Test == "" && strings.HasPrefix(e.Output, "ok  "):
		fmt.Fprint(r.w, e.Output)
	case framing(e.Output):
	default:
		r.outputs[k] = append(r.outputs[k], e.Output)
	}
}

// framing reports whether a line only names the test to which the next lines belong.
func framing(line string) bool {
	return slices.ContainsFunc([]string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "}, func(prefix string) bool {
		return strings.HasPrefix(line, prefix)
	})
}

// failed notes a failed test. It does not note a test that failed because of a subtest, nor a
// package that failed because of a test.
func (r *report) failed(e event, k string) {
	below := e.Test + "/"
	if e.Test == "" {
		below = ""
	}

	if slices.ContainsFunc(r.failures, func(f failure) bool {
		return f.pkg == e.Package && f.test != "" && strings.HasPrefix(f.test, below)
	}) {
		delete(r.outputs, k)
		return
	}

	f := failure{stage: r.stage, pkg: e.Package, test: e.Test, output: r.outputs[k]}
	if e.Test == "" {
		f.output = append(f.output, r.outputs[key(e.FailedBuild, "")]...)
		f.output = append(f.output, r.unfinished(e.Package)...)
	}

	delete(r.outputs, k)
	r.fail(f)
}

// unfinished returns the first lines of each test of a package that has begun and not ended,
// because the package ended during the test.
func (r *report) unfinished(pkg string) []string {
	const most = 50 // Lines of each test: a panic's stack has the cause at its beginning.
	var all []string
	for k, lines := range r.outputs {
		if strings.HasPrefix(k, key(pkg, "Test")) {
			all = append(all, fmt.Sprintf("the package ended during %s:\n", k))
			all = append(all, lines[:min(most, len(lines))]...)
		}
	}
	return all
}

func (r *report) fail(f failure) {
	r.failures = append(r.failures, f)
	fmt.Fprintf(r.w, "FAIL %s %s\n%s", f.pkg, f.test, strings.Join(f.output, ""))
}

// summary returns the last lines of a failed run, which name the failures. It keeps them short
// enough for one screen if it can.
func summary(failures []failure) string {
	const screen = 30
	var b strings.Builder

	each := max(1, (screen-2)/len(failures)-2)
	fmt.Fprintf(&b, "\n==> %d failed; each with its last lines and the command that runs it alone\n", len(failures))

	for _, f := range failures {
		fmt.Fprintf(&b, "FAIL %s %s\n", f.pkg, f.test)
		lines := f.output[max(0, len(f.output)-each):]
		for _, line := range lines {
			fmt.Fprintf(&b, "    %.200s\n", strings.TrimSpace(line))
		}

		command := f.stage
		if f.pkg != "" {
			command = f.stage.alone(f.pkg, f.test)
		}
		fmt.Fprintf(&b, "    %s\n", command.shell())
	}

	return b.String()
}
