// Command testrun runs go test in several modules, one after another, and lists the failures at
// the end. It prints a line for each package and the output of failed tests; passing tests print
// nothing.
//
//	testrun [-repeat DIR,DIR] 'DIR ARGUMENT...' ...
//
// Each argument is the directory of a module and the arguments of its go test, separated by spaces.
// All modules run, also after a failure. The last lines of a failed run name each failed test, with
// its last messages and a command that runs it alone.
//
// A failed test of a module that -repeat lists runs once more, alone, unless more than ten tests of
// the module failed. If it passes, testrun prints FLAKY with its name and the output of both runs,
// and doesn't count it as failed.
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

func main() {
	repeat := flag.String("repeat", "", "comma-separated `directories` whose failed tests run once more, alone")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "testrun: no module; usage: testrun [-repeat DIR,DIR] 'DIR ARGUMENT...' ...")
		os.Exit(2)
	}

	var failed []failure
	for _, module := range flag.Args() {
		s := parseStage(module)
		start := time.Now()
		fmt.Printf("== %s\n", s)
		failures := s.run(os.Stdout)
		if slices.Contains(strings.Split(*repeat, ","), s.dir) {
			failures = repeatAll(os.Stdout, s, failures)
		}
		fmt.Printf("== %s: %d s\n", s.dir, int(time.Since(start).Seconds()))
		failed = append(failed, failures...)
	}

	if len(failed) > 0 {
		fmt.Print(summary(failed))
		os.Exit(1)
	}
}
