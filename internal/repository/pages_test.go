package repository

import (
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
)

// links of a page (also of images and of link definitions), and mentions of a page in Go.
var (
	linkOfPage    = regexp.MustCompile(`(?m)\]\(([^)\s]+)(?:[ \t]+"[^"\n]*")?\)|(?:src|srcset|href)="([^"\s]+)"|^\[[^\]\n]+\]:[ \t]+(\S+)`)
	pageInComment = regexp.MustCompile(`\bdocs/(?:[\w-]+/)*[\w-]+\.md(#[\w-]+)?`)
	codeInLine    = regexp.MustCompile("`[^`\n]*`")
	notOfAnchor   = regexp.MustCompile(`[^\p{L}\p{N}_ -]+`)
)

// Each link of a page to a file of the repository, or to a heading in one, leads to it. So does
// each page that Go mentions, in comments and in messages.
func TestLinksOfPagesLeadSomewhere(t *testing.T) {
	anchors := map[string][]string{}
	eachText(t, func(name, text string) {
		if filepath.Ext(name) == ".go" {
			for _, link := range pageInComment.FindAllString(text, -1) {
				checkLink(t, name, ".", link, anchors)
			}
			return
		}
		for _, link := range linksOf(text) {
			checkLink(t, name, filepath.Dir(name), link, anchors)
		}
	})
}

// linksOf returns the links of a page that lead to the repository.
func linksOf(page string) (links []string) {
	text := codeInLine.ReplaceAllString(withoutCode(page), "")
	for _, found := range linkOfPage.FindAllStringSubmatch(text, -1) {
		if link := found[1] + found[2] + found[3]; !strings.Contains(link, "://") && !strings.HasPrefix(link, "mailto:") {
			links = append(links, link)
		}
	}
	return links
}

// Each form of a link is found, and a dead one is an error. Without this, the test above could pass
// by finding nothing.
func TestDeadLinksOfPagesAreFound(t *testing.T) {
	page := `A [link](CHANGELOG.md), a ![picture](docs/images/dashboard-overview.png "title"), [another](https://example.com),
<img src="docs/images/nothing.svg" alt="">, [a heading](CHANGELOG.md#unreleased) and [none](CHANGELOG.md#no-such-heading).

[defined]: core/nothing.md

` + "`[in code](nowhere.md)`\n\n```md\n[in code](nowhere.md)\n```\n"
	alive := []string{"CHANGELOG.md", "docs/images/dashboard-overview.png", "CHANGELOG.md#unreleased"}
	dead := []string{"docs/images/nothing.svg", "CHANGELOG.md#no-such-heading", "core/nothing.md"}
	anchors := map[string][]string{}
	for _, link := range linksOf(page) {
		err := deadLink(t, "README.md", ".", link, anchors)
		switch {
		case slices.Contains(dead, link):
			dead = slices.DeleteFunc(dead, func(d string) bool { return d == link })
			if err == nil {
				t.Errorf("%q is dead and no error", link)
			}
		case slices.Contains(alive, link):
			alive = slices.DeleteFunc(alive, func(a string) bool { return a == link })
			if err != nil {
				t.Error(err)
			}
		default:
			t.Errorf("%q is no link to the repository", link)
		}
	}
	if len(dead)+len(alive) > 0 {
		t.Errorf("links were not found: %q", slices.Concat(dead, alive))
	}
}

// README promises two commands on a fresh machine: one runs the main job, the other the tests.
func TestReadmePromisesTwoCommands(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"\n    go run ./examples/gitindex -fail 0.05 ", "\n    make test "} {
		if strings.Count(string(text), command) != 1 {
			t.Errorf("README.md does not have the line %q once", strings.TrimSpace(command))
		}
	}
}

// README and the pages of the guide are read as a whole, so they are short.
func TestPagesForUsersAreShort(t *testing.T) {
	pages, err := filepath.Glob("docs/guide/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs/guide has %d pages: %v", len(pages), err)
	}
	for _, page := range append(pages, "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if lines := strings.Count(string(text), "\n"); lines > 150 {
			t.Errorf("%s has %d lines, at most 150 are wanted", page, lines)
		}
	}
}

// The page of the reasons why a job does not run has each of them.
func TestPagesListEachReasonOnce(t *testing.T) {
	text, err := os.ReadFile("docs/operations/why.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]int{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(string(text), -1) {
		listed[row[1]]++
	}
	for r := inspect.Reason(0); !strings.HasPrefix(r.String(), "Reason("); r++ {
		if listed[r.String()] != 1 {
			t.Errorf("docs/operations/why.md has the reason %q %d times, want once", r, listed[r.String()])
		}
		delete(listed, r.String())
	}
	for name := range listed {
		t.Errorf("docs/operations/why.md has the reason %q, which Why does not return", name)
	}
}

// docs/README.md leads to each page, once.
func TestPagesAreListedOnce(t *testing.T) {
	pages, err := filepath.Glob("docs/*/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("docs has %d pages: %v", len(pages), err)
	}
	text, err := os.ReadFile("docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := strings.TrimPrefix(filepath.ToSlash(page), "docs/")
		if filepath.Dir(name) == "design" && name != "design/README.md" {
			continue // design/README.md is their list.
		}
		if n := strings.Count(string(text), "]("+name+")"); n != 1 {
			t.Errorf("docs/README.md has %d links to %s, want 1", n, name)
		}
	}
}

// eachText calls f with the name and the text of each page and each file of Go.
func eachText(t *testing.T, f func(name, text string)) {
	t.Helper()
	eachFileOf(t, func(name string) bool {
		return filepath.Ext(name) == ".md" || filepath.Ext(name) == ".go"
	}, f)
}

// eachFileOf calls f with the name and the text of each file whose name is wanted.
func eachFileOf(t *testing.T, wanted func(name string) bool, f func(name, text string)) {
	t.Helper()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // Another test has removed its file.
			return nil
		}
		if err == nil && d.IsDir() && name != "." && strings.HasPrefix(d.Name(), ".") {
			return filepath.SkipDir
		}
		if err != nil || !d.Type().IsRegular() || !wanted(filepath.ToSlash(name)) {
			return err
		}
		text, err := os.ReadFile(name)
		f(filepath.ToSlash(name), string(text))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func checkLink(t *testing.T, name, dir, link string, anchors map[string][]string) {
	t.Helper()
	if err := deadLink(t, name, dir, link, anchors); err != nil {
		t.Error(err)
	}
}

// deadLink returns an error if a link of the file name leads to no file or to no heading. Links are
// relative to dir.
func deadLink(t *testing.T, name, dir, link string, anchors map[string][]string) error {
	t.Helper()
	path, anchor, _ := strings.Cut(link, "#")
	target := filepath.Join(dir, path)
	if path == "" {
		target = name
	}
	if _, err := os.Stat(target); err != nil {
		return fmt.Errorf("%s: %q leads nowhere: %w", name, link, err)
	}
	if anchor == "" {
		return nil
	}
	if anchors[target] == nil {
		anchors[target] = anchorsOf(t, target)
	}
	if !slices.Contains(anchors[target], anchor) {
		return fmt.Errorf("%s: %q: %s has no such heading", name, link, target)
	}
	return nil
}

// anchorsOf returns the anchors of a page's headings, as GitHub makes them.
func anchorsOf(t *testing.T, page string) (anchors []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]int{}
	for line := range strings.Lines(withoutCode(string(text))) {
		heading, ok := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !ok || !strings.HasPrefix(line, "#") {
			continue
		}
		anchor := strings.ReplaceAll(notOfAnchor.ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), ""), " ", "-")
		if n := seen[anchor]; n > 0 {
			anchors = append(anchors, fmt.Sprintf("%s-%d", anchor, n))
		} else {
			anchors = append(anchors, anchor)
		}
		seen[anchor]++
	}
	return anchors
}

// withoutCode returns a page without its blocks of code.
func withoutCode(page string) string {
	var b strings.Builder
	inside := false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "```") {
			inside = !inside
		} else if !inside {
			b.WriteString(line)
		}
	}
	return b.String()
}

// Each block of Go of a page compiles. It may use the imports and variables of
// testdata/pages/common.go, the declarations of the file of the page's name there, and those of the
// page's whole programs. The pages for users of asynq and River may also use these libraries. Only
// unused names are allowed, since a part of a program can't avoid them.
func TestGoOfPagesCompiles(t *testing.T) {
	exports := exportData(t)
	blocks := 0
	eachText(t, func(name, text string) {
		if filepath.Ext(name) == ".md" && strings.Contains(text, "```go\n") {
			t.Run(name, func(t *testing.T) { blocks += compilePage(t, name, text, exports) })
		}
	})
	if blocks < 24 {
		t.Errorf("%d blocks of Go were found, fewer than there were: is one not looked at?", blocks)
	}
}

// compilePage checks the blocks of a page as one package, and returns how many there are.
func compilePage(t *testing.T, name, text string, exports map[string]string) (blocks int) {
	fset := token.NewFileSet()
	parse := func(name string, text any) *ast.File {
		file, err := parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		file.Name.Name = "pages" // also of a program
		return file
	}
	common := filepath.FromSlash("internal/repository/testdata/pages/common.go")
	files := []*ast.File{parse(common, nil)}
	if own := filepath.Join("internal", "repository", "testdata", "pages", strings.TrimSuffix(filepath.Base(name), ".md")+".go"); exists(own) {
		files = append(files, parse(own, nil))
	}
	for line, block := range blocksOfGo(text) {
		blocks++
		block = fmt.Sprintf("//line %s:%d\n%s", name, line, block)
		if !strings.Contains(block, "\npackage ") {
			block = "package pages\n" + importsOf(t, common) + "func _() {\n" + block + "}\n"
		}
		files = append(files, parse("block", block))
	}
	checked := types.Config{
		Importer: importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }),
		Error: func(err error) {
			if !strings.Contains(err.Error(), "and not used") {
				t.Error(err)
			}
		},
	}
	if _, err := checked.Check("pages", fset, files, nil); err != nil && !errors.As(err, new(types.Error)) {
		t.Error(err)
	}
	return blocks
}

func exists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// blocksOfGo yields the blocks of Go of a page with the number of their first line.
func blocksOfGo(page string) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		lines := strings.SplitAfter(page, "\n")
		for i := 0; i < len(lines); i++ {
			if lines[i] != "```go\n" {
				continue
			}
			first := i + 1
			for i = first; i < len(lines) && !strings.HasPrefix(lines[i], "```"); i++ {
			}
			if !yield(first+1, strings.Join(lines[first:i], "")) {
				return
			}
		}
	}
}

// importsOf returns the imports of a file, as text.
func importsOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "import (")
	list, _, closed := strings.Cut(rest, "\n)")
	if !closed {
		t.Fatalf("%s has no imports", name)
	}
	return "import (" + list + "\n)\n"
}

// exportData returns where the go command has put the export data of each package that a page may
// import.
func exportData(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, packages := range [][]string{
		{".", ".", "./adapters/...", "./inspect", "./skeintest", "./ports/...", "./conformance", "context", "log", "net/http", "os/signal", "syscall", "testing"},
		{"adapters/prometheus", ".", "github.com/prometheus/client_golang/prometheus/promhttp"}, {"adapters/otel", "."},
		{"examples/benchmark", "github.com/hibiken/asynq", "github.com/riverqueue/river", "github.com/riverqueue/river/riverdriver/riverpgxv5"},
	} {
		args := slices.Concat([]string{"-C", packages[0], "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, packages[1:])
		for line := range strings.Lines(goOutput(t, exec.Command("go", args...))) {
			if path, file, _ := strings.Cut(strings.TrimSpace(line), " "); file != "" && files[path] == "" {
				files[path] = file
			}
		}
	}
	return files
}
