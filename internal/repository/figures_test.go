package repository

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// measuredFigures match figures that come from a measurement. The last group is the figure. Seconds
// and bytes are mostly settings and limits, so they count only after a verb such as "takes".
var measuredFigures = []*regexp.Regexp{
	regexp.MustCompile(`(\d[\d,.]* ?(?:µs|ms|jobs/s|pushes/s|calls/s|bytes/job|%))(?:\W|$)`),
	regexp.MustCompile(`\b(?:takes?|took|takes up|costs?|adds?|grew|instead of|measured)\b[^.:;|]{0,60}?\b(\d[\d,.]* (?:bytes|kB|KiB|MB|MiB|GB|s|seconds|minutes))\b`),
	regexp.MustCompile(`\b((?:half|thirds?|quarter|fourth|fifth|sixth|tenth) (?:more|less|of the rate|of a core))\b`),
	regexp.MustCompile(`^\|.*\b(?:jobs/s|pushes/s|µs|ms) \|[^|]*?(\d[\d,.]+)`),
}

// settings are texts of pages with a value or a limit that is set, in a unit of measured figures.
var settings = map[string][]string{
	"docs/guide/sizes.md":             {"take 40 ms each", "of 10 ms each", "the next 50 ms"},
	"docs/operations/postgres-dba.md": {"500 ms at most"},
	"docs/operations/postgres.md": {
		"up to 200 ms at a time", "servers 20 ms later", "in 20 ms to such transactions", "ends after 500 ms",
	},
	"docs/reference/cli.md": {"15 s at most"},
}

// Each measured figure of a page for users stands in a section with a command that measures it and
// the date of the measurement, or with a link to evidence that has both.
func TestFiguresHaveTheirCommandAndDate(t *testing.T) {
	found := 0
	eachFileOf(t, hasFigures, func(name, text string) {
		faults, figures := figureFaults(t, name, text, settings[name])
		found += figures
		for _, fault := range faults {
			t.Error(fault)
		}
	})
	if found < 20 {
		t.Errorf("%d measured figures were found, fewer than there were", found)
	}
}

// The test above finds a figure without a source, and no fault where there is none.
func TestFiguresWithoutASourceAreFound(t *testing.T) {
	const (
		noDate    = "has no date"
		noCommand = "has no command"
	)
	for _, c := range []struct{ page, want string }{
		{"A turn takes 3 ms.\n", noDate},
		{"A turn takes 3 ms (2026-11-20).\n", noCommand},
		{"A turn takes 3 ms (2026-11-20, `go doc .`).\n", noCommand},
		{"A turn takes 3 ms (2026-11-20, `make measure`).\n", ""},
		{"## Figures of 2026-11-20\n\nA turn takes 3 ms.\n\n    go test -bench Engine .\n", ""},
		{"A turn takes 3 ms (2026-11-20, `make nothing`).\n", "which is no target"},
		{"A turn takes 3 ms (2026-11-20, `make measure MEASURED='NoSuch$$'`).\n", "which is no test"},
		{"A turn takes 3 ms (2026-11-20, `go -C internal/integration test -run HistoryOfADay .`).\n", ""},
		{"A turn takes 3 ms (2026-11-20, `go test -run '^$' -bench Nothing .`).\n", "which is no benchmark"},
		{"It handles 9,000 jobs/s (2026-11-20, `go run . -work nothing`).\n", "examples/benchmark lacks"},
		{"It handles 9,000 jobs/s (2026-11-20, `go run . -runs 2 -work handle,io`).\n", ""},
		{"| rate | |\n| --- | --- |\n| jobs/s | 9,000 |\n", noDate},
		{"It is a fifth more.\n", noDate},
		{"A job takes 300 bytes (2026-11-20, `SELECT pg_table_size('jobs')`).\n", ""},
		{"A turn takes 3 ms ([measured](docs/evidence/2026-11-26-pages.txt)).\n", ""},
		{"A turn takes 3 ms ([measured](docs/contributing/benchmarks.md#postgres-beside-river)).\n", ""},
		{"A turn takes 3 ms ([measured](docs/contributing/benchmarks.md#the-bare-loop)).\n", noDate},
		{"A turn takes 3 ms.\n\n# Another section\n\n2026-11-20, `make measure`\n", noDate},
		{"A lease has 10 s, a text 64 bytes, and `3 ms` is code.\n", ""},
		{"A poll waits at most 5 ms.\n", ""},
	} {
		faults, _ := figureFaults(t, "README.md", c.page, []string{"at most 5 ms"}[:strings.Count(c.page, "at most")])
		if got := strings.Join(faults, "\n"); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q: got %q, want %q", c.page, got, c.want)
		}
	}
	if faults, _ := figureFaults(t, "README.md", "A turn ends.\n", []string{"at most 5 ms"}); len(faults) != 1 {
		t.Errorf("a setting that the page lacks: %q", faults)
	}
}

func hasFigures(name string) bool {
	if filepath.Ext(name) != ".md" {
		return false
	}
	return name == "README.md" || slices.ContainsFunc([]string{"guide", "operations", "reference"}, func(dir string) bool {
		return strings.HasPrefix(name, "docs/"+dir+"/")
	})
}

// figureFaults lists the measured figures of a page without a source, and the settings that the
// page does not have. It returns the number of measured figures too.
func figureFaults(t *testing.T, name, text string, settings []string) (faults []string, figures int) {
	t.Helper()
	used := map[string]bool{}
	sections := sectionsOf(text)
	for _, p := range passagesOfPage(text, true) {
		joined := p.joined()
		for _, figure := range figuresOf(joined, settings, used) {
			figures++
			line := p.lineAt(figure[0])
			in := sections[slices.IndexFunc(sections, func(s section) bool { return line < s.end })]
			if err := in.source(t, name); err != nil {
				faults = append(faults, fmt.Sprintf("%s:%d: %q looks measured, and its section %q %v; if the value is a setting or a limit, add it to settings",
					name, line, joined[figure[0]:figure[1]], in.heading, err))
			}
		}
	}
	for _, s := range settings {
		if !used[s] {
			faults = append(faults, fmt.Sprintf("%s has no figure in %q: remove it from settings", name, s))
		}
	}
	return faults, figures
}

// figuresOf returns the places of the measured figures of a passage, and marks the settings that
// cover others as used.
func figuresOf(joined string, settings []string, used map[string]bool) (places [][2]int) {
	for _, pattern := range measuredFigures {
		for _, m := range pattern.FindAllStringSubmatchIndex(joined, -1) {
			place := [2]int{m[2], m[3]}
			if !covered(joined, place, settings, used) && !slices.Contains(places, place) {
				places = append(places, place)
			}
		}
	}
	return places
}

// covered reports whether a place of a text is within one of the settings.
func covered(text string, place [2]int, settings []string, used map[string]bool) bool {
	is := false
	for _, s := range settings {
		for at := 0; ; at++ {
			next := strings.Index(text[at:], s)
			if next < 0 {
				break
			}
			at += next
			if at <= place[0] && place[1] <= at+len(s) {
				is, used[s] = true, true
			}
		}
	}
	return is
}

// section is the part of a page below a heading, up to the next heading.
type section struct {
	heading string
	level   int
	end     int // The number of the line after its last one.
	text    string
}

func sectionsOf(page string) []section {
	sections := []section{{}}
	fenced := false
	lines := strings.SplitAfter(page, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		}
		if heading := strings.TrimLeft(line, "#"); !fenced && heading != line && strings.HasPrefix(heading, " ") {
			sections = append(sections, section{heading: strings.TrimSpace(heading), level: len(line) - len(heading)})
		}
		last := &sections[len(sections)-1]
		last.text += line
		last.end = i + 2
	}
	return sections
}

var (
	dateOfFigure = regexp.MustCompile(`\b20\d\d-\d\d-\d\d\b`)
	spanOfCode   = regexp.MustCompile("`([^`\n]+)`")
	// sourceOfFigure is a link to a page or a file that may have a command and a date.
	sourceOfFigure = regexp.MustCompile(`\]\(([^)\s]*(?:evidence/[\w.-]+|benchmarks\.md#[\w-]+))\)`)
)

// source returns an error if a section has neither a command and a date nor a link to both.
func (s section) source(t *testing.T, name string) error {
	t.Helper()
	err := hasCommandAndDate(t, s.heading+s.text, codeOf(s.text))
	for _, link := range sourceOfFigure.FindAllStringSubmatch(s.text, -1) {
		if err == nil {
			return nil
		}
		path, anchor, _ := strings.Cut(link[1], "#")
		text, readErr := os.ReadFile(filepath.Join(filepath.Dir(name), path))
		if readErr != nil {
			return readErr
		}
		linked, code := string(text), string(text)
		if anchor != "" {
			linked = below(linked, anchor)
			code = codeOf(linked)
		}
		err = hasCommandAndDate(t, filepath.Base(path)+linked, code)
	}
	return err
}

// below returns the section of a page with an anchor, and the sections within it.
func below(page, anchor string) (text string) {
	level := 0
	for _, s := range sectionsOf(page) {
		switch {
		case s.level > 0 && strings.ReplaceAll(notOfAnchor.ReplaceAllString(strings.ToLower(s.heading), ""), " ", "-") == anchor:
			level = s.level
		case s.level <= level:
			level = 0
		}
		if level > 0 {
			text += s.text
		}
	}
	return text
}

// codeOf returns the spans and blocks of code of a page, a line each.
func codeOf(page string) string {
	var b strings.Builder
	for _, span := range spanOfCode.FindAllStringSubmatch(page, -1) {
		b.WriteString(span[1] + "\n")
	}
	fenced := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
		} else if fenced || strings.HasPrefix(line, "    ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Commands that measure, each with what must exist: a target and a pattern of tests of make, a
// directory and a pattern of go test, works of the benchmark, and columns of Postgres's statistics.
var (
	makeCommand  = regexp.MustCompile(`\bmake ([a-z][\w-]*)(?:.*?MEASURED='?([^'\s]+))?`)
	testCommand  = regexp.MustCompile(`\bgo (?:-C (\S+) )?test\b(.*)`)
	workCommand  = regexp.MustCompile(`\bgo run \. .*?-work ([\w,-]+)`)
	sizesCommand = regexp.MustCompile(`\bpg_(?:total_relation|table|indexes)_size\(`)
	patternFlag  = regexp.MustCompile(`-(bench|run)[= ](?:'([^']+)'|(\S+))`)
)

// hasCommandAndDate returns an error if a text has no date, or its code no command that measures
// and exists.
func hasCommandAndDate(t *testing.T, text, code string) error {
	t.Helper()
	if !dateOfFigure.MatchString(text) {
		return fmt.Errorf("has no date of a measurement")
	}
	err := fmt.Errorf("has no command that measures")
	for line := range strings.Lines(code) {
		known, lineErr := measures(t, line)
		if known && lineErr == nil {
			return nil
		}
		if known {
			err = lineErr
		}
	}
	return err
}

// measures reports whether a line of code has a command that measures. The error is about a part of
// the command that does not exist.
func measures(t *testing.T, line string) (bool, error) {
	t.Helper()
	if m := makeCommand.FindStringSubmatch(line); m != nil {
		if makefile := read(t, "Makefile"); !strings.Contains(makefile, "\n"+m[1]+":") {
			return true, fmt.Errorf("has make %s, which is no target", m[1])
		}
		if m[2] == "" {
			return true, nil
		}
		return true, isTest(t, "internal/integration/...", "Test", strings.ReplaceAll(m[2], "$$", "$"))
	}
	if m := testCommand.FindStringSubmatch(line); m != nil {
		return measuringTest(t, m[1], m[2])
	}
	if m := workCommand.FindStringSubmatch(line); m != nil {
		works := read(t, "examples/benchmark/work.go")
		for work := range strings.SplitSeq(m[1], ",") {
			if !strings.Contains(works, fmt.Sprintf("{name: %q", work)) {
				return true, fmt.Errorf("has the work %s, which examples/benchmark lacks", work)
			}
		}
		return true, nil
	}
	return sizesCommand.MatchString(line), nil
}

// measuringTest is [measures] for the arguments of go test: those with -bench or -run.
func measuringTest(t *testing.T, dir, args string) (bool, error) {
	t.Helper()
	kind, pattern := "", ""
	for _, flag := range patternFlag.FindAllStringSubmatch(args, -1) {
		if kind != "bench" {
			kind, pattern = flag[1], flag[2]+flag[3]
		}
	}
	if kind == "" {
		return false, nil
	}
	for arg := range strings.FieldsSeq(args) {
		if strings.HasPrefix(arg, "./") {
			dir = filepath.Join(dir, arg)
		}
	}
	return true, isTest(t, dir, map[string]string{"bench": "Benchmark", "run": "Test"}[kind], pattern)
}

// isTest returns an error if no test or benchmark of a directory has a name of a pattern. If the
// directory ends in "/...", those of the directories below count too.
func isTest(t *testing.T, dir, kind, pattern string) error {
	t.Helper()
	top, _, _ := strings.Cut(pattern, "/")
	wanted, err := regexp.Compile(top)
	if err != nil {
		return err
	}
	function := regexp.MustCompile(`(?m)^func (` + kind + `\w*)\(`)
	found := false
	eachFileOf(t, func(name string) bool {
		below, all := strings.CutSuffix(dir, "...")
		return (all && strings.HasPrefix(name, below) || filepath.Dir(name) == filepath.Clean(dir)) && strings.HasSuffix(name, "_test.go")
	}, func(_, text string) {
		for _, m := range function.FindAllStringSubmatch(text, -1) {
			found = found || wanted.MatchString(m[1])
		}
	})
	if !found {
		return fmt.Errorf("has %q, which is no %s of %q", pattern, strings.ToLower(kind), dir)
	}
	return nil
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
