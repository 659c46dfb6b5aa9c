package repository

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/skeinq/skein"

// room is the allowed imports of a package: paths are the house's own unless they start with a
// host, "x/..." is x and all below it, and "..." is anything at all.
type room struct {
	path    string
	imports []string
}

// house is docs/architecture.md as data. The root is ".". The longest path that
// matches a package rules it, and a package without one fails the test: give
// it a room here and there.
var house = []room{
	{"core", nil},
	{"ports", []string{"core"}},
	{"ports/storekit", []string{"core", "ports"}},
	{"internal/logs", nil},
	{"inspect/internal/bulk", []string{"core", "ports"}},
	{"internal/jsonerror", nil},
	{"internal/canonical", nil},
	{"inspect", []string{"core", "ports", "inspect/internal/bulk", "internal/errorgroup", "internal/jsonerror", "internal/logs", "internal/specs"}},
	{"internal/shown", []string{"core"}},
	{"internal/service", []string{"inspect", "core", "internal/canonical", "internal/figures", "internal/scores", "internal/shown", "internal/specs", "internal/versions"}},
	{"adapters/httpapi", []string{"internal/canonical", "internal/service", "inspect", "internal/jsonerror", "internal/shown"}},
	{"internal/figures", nil},
	{"internal/versions", nil},
	{"internal/linediff", nil},
	{"internal/wrong", []string{"inspect", "core", "internal/figures", "internal/versions"}},
	{"adapters/dashboard", []string{"adapters/httpapi", "internal/service", "inspect", "core", "internal/figures", "internal/linediff", "internal/versions", "internal/wrong"}},
	{"internal/metrics", nil},
	{"internal/metrics/stored", []string{"core", "inspect"}},
	{"internal/metrics/counting", []string{"core", "ports", "internal/metrics"}},
	{"adapters/prometheus", []string{"inspect", "core", "ports", "internal/metrics/...", "github.com/prometheus/client_golang/..."}},
	{"adapters/otel", []string{".", "inspect", "core", "ports", "internal/metrics/...", "go.opentelemetry.io/otel/..."}},
	{"adapters/memory", []string{"core", "ports", "ports/storekit"}},
	{"adapters/redis", []string{"adapters/redis/internal/...", "core", "ports", "ports/storekit", "internal/logs", "github.com/redis/go-redis/v9/..."}},
	{"adapters/redis/internal/exchange", []string{"adapters/redis/internal/record", "ports", "ports/storekit", "github.com/redis/go-redis/v9/..."}},
	{"adapters/redis/internal/record", []string{"core", "ports", "ports/storekit"}},
	{"adapters/postgres", []string{"core", "ports", "ports/storekit", "internal/logs", "github.com/jackc/pgx/v5/..."}},
	{"conformance/internal/model", []string{"core", "ports"}},
	{"conformance/internal/harness", []string{"core", "ports", "ports/storekit", "internal/virtual", "github.com/google/go-cmp/..."}},
	{"conformance/internal/env", []string{"conformance/internal/harness", "core", "ports", "internal/virtual"}},
	{"conformance/internal/cases", []string{"conformance/internal/cases/...", "conformance/internal/env", "ports"}},
	{"conformance/internal/cases/bounds", []string{"conformance/internal/env", "core", "ports"}},
	{"conformance/internal/cases/look", []string{"conformance/internal/env", "core", "ports"}},
	{"conformance/internal/cases/merge", []string{"conformance/internal/env", "core", "ports", "internal/vectors"}},
	{"internal/vectors", nil},
	{"conformance/internal/cases/push", []string{"conformance/internal/env", "core", "ports", "internal/vectors"}},
	{"conformance/internal/cases/calendar", []string{"conformance/internal/env", "core", "ports"}},
	{"conformance/internal/cases/registry", []string{"conformance/internal/env", "core", "ports", "internal/vectors"}},
	{"conformance/internal/cases/step", []string{"conformance/internal/env", "core", "ports"}},
	{"conformance/internal/cases/transaction", []string{"conformance/internal/env", "core", "ports"}},
	{"conformance/internal/cases/turn", []string{"conformance/internal/env", "core", "ports", "internal/vectors"}},
	{"conformance/internal/racing", []string{"conformance/internal/env", "conformance/internal/harness", "core", "ports"}},
	{"conformance/internal/faults", []string{"conformance/internal/env", "conformance/internal/harness", "core", "ports", "ports/storekit", "internal/virtual"}},
	{"conformance/internal/random", []string{"conformance/internal/harness", "conformance/internal/model", "core", "ports", "ports/storekit", "internal/virtual", "pgregory.net/rapid"}},
	{"conformance/internal/broken", nil},
	{"conformance", []string{"conformance/internal/...", "core", "ports"}},
	{"internal/dispatch", []string{"core"}},
	{"internal/specs", []string{"core"}},
	{"internal/engine/retention", []string{"core", "ports", "internal/engine/report"}},
	{"internal/engine/ticks", []string{"core", "ports", "internal/engine/report", "internal/specs"}},
	{"internal/engine", []string{"core", "ports", "internal/dispatch", "internal/engine/clock", "internal/engine/execution", "internal/engine/guard", "internal/engine/membership", "internal/engine/report", "internal/engine/retention", "internal/engine/ticks", "internal/logs"}},
	{"internal/engine/clock", []string{"core"}},
	{"internal/engine/execution", []string{"core", "ports", "internal/engine/clock", "internal/engine/guard", "internal/engine/report"}},
	{"internal/engine/guard", []string{"ports"}},
	{"internal/engine/membership", []string{"core", "ports", "internal/engine/report"}},
	{"internal/engine/report", []string{"core", "ports", "internal/engine/guard", "internal/logs"}},
	{"internal/scores", nil},
	{"internal/waits", []string{"core", "ports"}},
	{"internal/errorgroup", []string{"core"}},
	{".", []string{"core", "ports", "internal/canonical", "internal/engine", "internal/engine/execution", "internal/engine/guard", "internal/engine/report", "internal/errorgroup", "internal/logs", "internal/scores", "internal/specs", "internal/waits"}},
	{"internal/webhook", []string{".", "core", "internal/logs"}},
	{"skeintest", []string{".", "inspect", "core", "ports", "ports/storekit", "adapters/memory", "internal/virtual"}},
	{"internal/virtual", nil},
	{"internal/transcripts", []string{"github.com/google/go-cmp/..."}},
	{"internal/command", nil},
	{"internal/tier", nil},
	{"internal/repository", nil},
	{"internal/backends", []string{"core", "ports", "adapters/memory", "adapters/redis", "adapters/postgres",
		"github.com/redis/go-redis/v9/...", "github.com/jackc/pgx/v5/..."}},
	{"cmd/skein", []string{".", "inspect", "core", "ports", "adapters/postgres", "adapters/httpapi", "adapters/dashboard", "adapters/prometheus", "internal/backends", "internal/canonical", "internal/service", "internal/shown", "internal/wrong",
		"internal/command", "internal/figures", "internal/linediff", "internal/specs", "internal/webhook", "cmd/skein/internal/shop", "charm.land/bubbletea/v2", "github.com/spf13/cobra", "github.com/spf13/pflag", "github.com/prometheus/client_golang/...",
		"github.com/redis/go-redis/v9/logging", "golang.org/x/sys/unix", "golang.org/x/text/width"}},
	{"cmd/skein/internal/shop", []string{".", "inspect", "core", "ports", "ports/storekit", "adapters/memory", "golang.org/x/sync/errgroup"}},
	{"internal/integration/...", []string{"..."}},
	{"internal/integration/testservers", []string{"github.com/redis/go-redis/v9/...", "github.com/jackc/pgx/v5/...", "github.com/ory/dockertest/v3/..."}},
	{"internal/browser", []string{"..."}},
	{"examples/...", []string{"..."}},
}

// modules are the directories of the modules that the house rules; examples/benchmark
// is a module as well, and free to import anything.
var modules = []string{".", "internal/integration", "internal/browser", "adapters/prometheus", "adapters/otel", "cmd/skein"}

// impure is the packages that core and internal/dispatch do without: I/O, randomness, and packages
// that carry either.
var impure = []string{
	"context", "crypto/rand", "io/...", "log/...", "math/rand/...", "net/...", "os/...", "runtime/...", "sync/...", "syscall", "testing/...",
}

// clocks are the parts of package time that core does without.
var clocks = []string{"After", "AfterFunc", "NewTicker", "NewTimer", "Now", "Since", "Sleep", "Tick", "Until"}

type pkg struct {
	ImportPath     string
	Dir            string
	Name           string
	Imports        []string
	GoFiles        []string
	IgnoredGoFiles []string
	Standard       bool
}

// path returns the import path below the module, "." for the root.
func (p *pkg) path() string { return within(p.ImportPath) }

// library reports whether users can import the package.
func (p *pkg) library() bool {
	return p.Name != "main" && !strings.Contains("/"+p.path()+"/", "/internal/")
}

// program reports whether the package is, or is only part of, a program.
func (p *pkg) program() bool {
	return p.Name == "main" || matches("cmd/...", p.path()) || matches("examples/...", p.path())
}

// within turns an import path of the module into the house's own notation.
func within(path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}

func matches(pattern, path string) bool {
	base, below := strings.CutSuffix(pattern, "...")
	if !below {
		return pattern == path
	}
	return base == "" || path+"/" == base || strings.HasPrefix(path, base)
}

func anyMatches(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return matches(pattern, path) })
}

// housePackages returns the packages of all modules that the house rules.
func housePackages(t *testing.T) []*pkg {
	t.Helper()
	var list []*pkg
	for _, dir := range modules {
		list = append(list, goList(t, "-C", dir, "./...")...)
	}
	return list
}

// goList lists packages, of the module in dir if args starts with "-C", dir.
func goList(t *testing.T, args ...string) []*pkg {
	t.Helper()
	var flags []string
	if args[0] == "-C" {
		flags, args = args[:2], args[2:]
	}
	args = slices.Concat([]string{"list"}, flags, []string{"-json=ImportPath,Dir,Name,Imports,GoFiles,IgnoredGoFiles,Standard"}, args)
	var list []*pkg
	for decoder := json.NewDecoder(strings.NewReader(goOutput(t, exec.Command("go", args...)))); ; {
		p := new(pkg)
		if err := decoder.Decode(p); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
}

func roomOf(path string) *room {
	var best *room
	for i := range house {
		if matches(house[i].path, path) && (best == nil || len(house[i].path) > len(best.path)) {
			best = &house[i]
		}
	}
	return best
}

func TestImportsGoOnlyAsTheHouseAllows(t *testing.T) {
	standard := map[string]bool{}
	for _, p := range goList(t, "std") {
		standard[p.ImportPath] = true
	}
	for _, p := range housePackages(t) {
		room := roomOf(p.path())
		if room == nil {
			t.Errorf("%s has no room in the house: add it to the table of this test and to docs/architecture.md", p.path())
			continue
		}
		for _, imported := range p.Imports {
			if !standard[imported] && !anyMatches(room.imports, within(imported)) {
				t.Errorf("%s imports %s; it may import %v and the standard library", p.path(), within(imported), room.imports)
			}
		}
	}
}

// Package core and the decisions of lanes are pure.
func TestCoreIsPure(t *testing.T) {
	for _, p := range goList(t, "./core/...", "./internal/dispatch/...") {
		for _, imported := range p.Imports {
			if anyMatches(impure, imported) {
				t.Errorf("%s imports %s", p.path(), imported)
			}
		}
		eachFile(t, p, func(fset *token.FileSet, file *ast.File) {
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.GoStmt:
					t.Errorf("%v: %s starts a goroutine", fset.Position(n.Pos()), p.path())
				case *ast.SelectorExpr:
					if of, ok := n.X.(*ast.Ident); ok && of.Name == importedAs(file, "time") && slices.Contains(clocks, n.Sel.Name) {
						t.Errorf("%v: %s uses time.%s; time is an argument", fset.Position(n.Pos()), p.path(), n.Sel.Name)
					}
				}
				return true
			})
		})
	}
}

func TestLibraryNeverPanicsAndHasNoInit(t *testing.T) {
	for _, p := range housePackages(t) {
		if p.program() {
			continue
		}
		eachFile(t, p, func(fset *token.FileSet, file *ast.File) {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.Name == "init" {
					t.Errorf("%v: func init", fset.Position(f.Pos()))
				}
				for _, call := range panics(decl) {
					t.Errorf("%v: panic; return an error", fset.Position(call.Pos()))
				}
			}
		})
	}
}

func TestBuiltProgramsAreIgnoredByGit(t *testing.T) {
	text, err := os.ReadFile(".gitignore")
	if err != nil {
		t.Fatal(err)
	}
	ignored := strings.Split(string(text), "\n")
	for _, p := range housePackages(t) {
		name := path.Base(p.ImportPath)
		if p.Name == "main" && (!slices.Contains(ignored, name) || !slices.Contains(ignored, "!"+name+"/")) {
			t.Errorf("%s: add %q and %q to .gitignore", p.ImportPath, name, "!"+name+"/")
		}
	}
}

// panics lists the calls of panic in a declaration, except those that panic again with the result
// of recover.
func panics(decl ast.Decl) []*ast.CallExpr {
	var calls []*ast.CallExpr
	recovered := map[string]bool{}
	ast.Inspect(decl, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if v, ok := n.Lhs[0].(*ast.Ident); ok && isCall(n.Rhs[0], "recover") {
				recovered[v.Name] = true
			}
		case *ast.CallExpr:
			if isCall(n, "panic") {
				calls = append(calls, n)
			}
		}
		return true
	})
	return slices.DeleteFunc(calls, func(call *ast.CallExpr) bool {
		v, ok := call.Args[0].(*ast.Ident)
		return ok && recovered[v.Name]
	})
}

func isCall(e ast.Expr, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	called, ok := call.Fun.(*ast.Ident)
	return ok && called.Name == name
}

// eachFile parses the package's files, those of other systems too.
func eachFile(t *testing.T, p *pkg, visit func(*token.FileSet, *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	for _, name := range append(slices.Clone(p.GoFiles), p.IgnoredGoFiles...) {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		visit(fset, file)
	}
}

// importedAs returns the name a file gives to an import whose last element is its
// package's name; empty if the file doesn't import it.
func importedAs(file *ast.File, path string) string {
	for _, spec := range file.Imports {
		if imported, err := strconv.Unquote(spec.Path.Value); err != nil || imported != path {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return path[strings.LastIndexByte(path, '/')+1:]
	}
	return ""
}

// A test in make test that sleeps or compares clocks in real time states why it can't fail on a
// slow machine. A loop that polls needs no reason, nor does a limit of minutes that ends a test
// which hangs. Benchmarks and tests marked by tier.Long are free.
func TestNoTestDependsOnTheMachinesSpeed(t *testing.T) {
	eachText(t, func(name, text string) {
		if !strings.HasSuffix(name, "_test.go") {
			return
		}
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, text, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if inVirtualTime(name, file) || leftToTestAll(file) {
			return
		}
		reasons := map[int]bool{} // The lines that a comment with a reason is on or above.
		for _, group := range file.Comments {
			if strings.Contains(group.Text(), "slow machine") {
				for line := fset.Position(group.Pos()).Line; line <= fset.Position(group.End()).Line+1; line++ {
					reasons[line] = true
				}
			}
		}
		for _, decl := range file.Decls {
			for _, use := range clockUses(decl) {
				if at := fset.Position(use); !reasons[at.Line] {
					t.Errorf("%s:%d: wait for a condition, count, or use testing/synctest; or say in a comment why this can't fail on a slow machine",
						name, at.Line)
				}
			}
		}
	})
}

// clockUses returns where a function sleeps or measures time, except for polling loops and limits
// of a test's patience.
func clockUses(decl ast.Decl) (uses []token.Pos) {
	f, ok := decl.(*ast.FuncDecl)
	if !ok || f.Body == nil || strings.HasPrefix(f.Name.Name, "Benchmark") || anyCall(f.Body, "tier", "Long") {
		return nil
	}
	allowed := map[ast.Node]bool{}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ForStmt:
			if post, ok := n.Post.(*ast.ExprStmt); ok {
				allowed[post.X] = true
			}
		case *ast.BinaryExpr:
			if strings.Contains(strings.ToLower(types.ExprString(n.Y)), "patience") {
				allowed[n.X] = true
			}
		case *ast.CallExpr:
			if !allowed[n] && (calls(n, "time", "Sleep") || calls(n, "time", "Since")) {
				uses = append(uses, n.Pos())
			}
		}
		return true
	})
	return uses
}

func anyCall(body ast.Node, pkg, function string) (found bool) {
	ast.Inspect(body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && calls(call, pkg, function)
		return !found
	})
	return found
}

func calls(call *ast.CallExpr, pkg, function string) bool {
	selected, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selected.Sel.Name != function {
		return false
	}
	x, ok := selected.X.(*ast.Ident)
	return ok && x.Name == pkg
}

// leftToTestAll reports whether a file has tests for make test-all or benchmarks, and no others.
func leftToTestAll(file *ast.File) bool {
	some := false
	for _, decl := range file.Decls {
		f, ok := decl.(*ast.FuncDecl)
		switch {
		case !ok || f.Recv != nil:
		case strings.HasPrefix(f.Name.Name, "Benchmark"):
			some = true
		case strings.HasPrefix(f.Name.Name, "Test") && f.Name.Name != "TestMain":
			if !anyCall(f.Body, "tier", "Long") {
				return false
			}
			some = true
		}
	}
	return some
}

// inVirtualTime reports whether the clock of a file's tests is that of testing/synctest. All tests
// of the engine run in a bubble that another file of their package makes.
func inVirtualTime(name string, file *ast.File) bool {
	return strings.HasPrefix(name, "internal/engine/") || slices.ContainsFunc(file.Imports, func(i *ast.ImportSpec) bool {
		return i.Path.Value == `"testing/synctest"`
	})
}
