package repository

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// quotedName is a name in a cell of a table: of a test, or of a case or a group of cases of package
// conformance.
var quotedName = regexp.MustCompile("`([^`]+)`")

// Each row of docs/contributing/faults.md names a test, and each name there is that of a test, or
// of a case or a group of cases of package conformance.
func TestEachFaultHasATest(t *testing.T) {
	tests := testNames(t)
	cases := caseNames(t)
	text, err := os.ReadFile(filepath.Join("docs", "contributing", "faults.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(line, "| \n"), "|")
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| ---") || strings.HasPrefix(line, "| what happens") {
			continue
		}
		rows++
		if len(cells) != 4 {
			t.Errorf("a row has %d cells, want 4: %s", len(cells), line)
			continue
		}
		named, last := 0, cells[3]
		for _, m := range quotedName.FindAllStringSubmatch(last, -1) {
			group, one, isCase := strings.Cut(m[1], "/")
			switch {
			case m[1] == "conformance" || m[1] == "CI=true" || m[1] == "make long" || strings.HasPrefix(m[1], "SKEIN_TEST_"):
				continue
			case strings.HasPrefix(m[1], "Test"):
				if !tests[m[1]] {
					t.Errorf("there is no test %s", m[1])
				}
			case !cases[group] || isCase && !cases[one]:
				t.Errorf("package conformance has no case %q", m[1])
			}
			named++
		}
		if named == 0 {
			t.Errorf("a row names no test: %s", line)
		}
	}
	if rows < 80 {
		t.Errorf("%d rows were found, fewer than there were: is one not looked at?", rows)
	}
}

// toldTest is a test and its file, as docs/contributing/qless-tests.md names them.
var toldTest = regexp.MustCompile("`(Test\\w+)` in `([\\w/]+_test\\.go)`")

// Each row of docs/contributing/qless-tests.md names tests and cases that exist, or a reason. The
// sums at its top are those of the rows.
func TestEachQlessTestHasATestOrAReason(t *testing.T) {
	cases := caseNames(t)
	page, err := os.ReadFile(filepath.Join("docs", "contributing", "qless-tests.md"))
	if err != nil {
		t.Fatal(err)
	}
	told, reasons := 0, map[string]int{}
	type sum struct{ all, told int }
	file, byFile := "", map[string]sum{}
	by := map[string]int{}
	for line := range strings.Lines(string(page)) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			file = strings.TrimSpace(heading)
		}
		row := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(row) != 3 || !strings.Contains(row[0], "test_") || strings.Contains(row[0], ".py") {
			continue
		}
		if reason, isReason := strings.CutPrefix(row[2], "Not told ("); isReason {
			kind, _, _ := strings.Cut(reason, ")")
			reasons[kind]++
			byFile[file] = sum{byFile[file].all + 1, byFile[file].told}
			continue
		}
		told++
		byFile[file] = sum{byFile[file].all + 1, byFile[file].told + 1}
		for _, m := range toldTest.FindAllStringSubmatch(row[2], -1) {
			if text, err := os.ReadFile(m[2]); err != nil || !strings.Contains(string(text), "\nfunc "+m[1]+"(") {
				t.Errorf("%s: there is no test %s in %s", row[0], m[1], m[2])
			}
		}
		names := quotedName.FindAllStringSubmatch(toldTest.ReplaceAllString(row[2], ""), -1)
		for _, m := range names {
			if group, one, _ := strings.Cut(m[1], "/"); !cases[group] || !cases[one] {
				t.Errorf("%s: package conformance has no case %q", row[0], m[1])
			}
		}
		switch rooms := toldTest.MatchString(row[2]); {
		case len(names) > 0 && rooms:
			by["such cases, and tests of one room"]++
		case len(names) > 0:
			by["cases of the conformance suite, so on every store"]++
		case rooms:
			by["tests of one room"]++
		default:
			t.Errorf("%s: the row names no test and no reason", row[0])
		}
	}
	all := told
	for kind, n := range reasons {
		all += n
		if !strings.Contains(string(page), fmt.Sprintf("\n| %s | %d |", kind, n)) {
			t.Errorf("%d tests are not told because of %q, and the page's sums differ", n, kind)
		}
	}
	if all != 243 {
		t.Errorf("the page has %d rows, want 243", all)
	}
	sums := []string{
		fmt.Sprintf("\n| all | %d | %d | %d |\n", all, told, all-told),
		fmt.Sprintf("\n%d of them are told again, and %d are not.\n", told, all-told),
	}
	for name, n := range byFile {
		sums = append(sums, fmt.Sprintf("\n| `%s` | %d | %d | %d |\n", name, n.all, n.told, n.all-n.told))
	}
	for what, n := range by {
		sums = append(sums, fmt.Sprintf("\n| %s | %d |\n", what, n))
	}
	for _, want := range sums {
		if !strings.Contains(string(page), want) {
			t.Errorf("a sum of the page differs from its rows, want %q", strings.TrimSpace(want))
		}
	}
}

// namedFile is a file that docs/architecture.md names, perhaps by the end of its path.
var namedFile = regexp.MustCompile(`^[\w./-]+\.(?:go|lua|sql|html|json|md)$`)

// Each file that docs/architecture.md names is there, and each test, and each group of cases that
// holds a rule of the map.
func TestArchitectureNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("docs", "architecture.md"))
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	err = filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // Another test has removed its file.
			return nil
		}
		if err == nil && !entry.IsDir() {
			files = append(files, "/"+filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	tests, cases, rules := testNames(t), caseNames(t), 0
	for line := range strings.Lines(string(text)) {
		for _, m := range quotedName.FindAllStringSubmatch(line, -1) {
			switch name := m[1]; {
			case strings.HasPrefix(name, "Test") && !tests[name]:
				t.Errorf("there is no test %s", name)
			case namedFile.MatchString(name) && !slices.ContainsFunc(files, func(file string) bool { return strings.HasSuffix(file, "/"+name) }):
				t.Errorf("there is no file %s", name)
			}
		}
		held, isRule := strings.CutSuffix(line, "`random` |\n")
		if !isRule {
			continue
		}
		rules++
		for _, m := range quotedName.FindAllStringSubmatch(held[strings.LastIndex(held, "|"):], -1) {
			if group, one, isCase := strings.Cut(m[1], "/"); !cases[group] || isCase && !cases[one] {
				t.Errorf("package conformance has no case %q", m[1])
			}
		}
	}
	if rules < 8 {
		t.Errorf("the map has %d rules, fewer than it had: is one not looked at?", rules)
	}
}

// testNames returns the names of all tests of all modules.
func testNames(t *testing.T) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	declared := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	eachText(t, func(name, text string) {
		if strings.HasSuffix(name, "_test.go") {
			for _, m := range declared.FindAllStringSubmatch(text, -1) {
				names[m[1]] = true
			}
		}
	})
	return names
}

// caseNames returns the strings of package conformance and of the rooms of its cases, the names of
// its cases and groups among them.
func caseNames(t *testing.T) map[string]bool {
	t.Helper()
	const rooms = "./conformance/internal/"
	names := map[string]bool{}
	for _, p := range goList(t, "./conformance", rooms+"cases/...", rooms+"racing", rooms+"faults") {
		eachFile(t, p, func(_ *token.FileSet, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil {
						names[s] = true
					}
				}
				return true
			})
		})
	}
	return names
}
