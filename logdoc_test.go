package skein_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logMethods are the methods of slog.Logger that write a record, with the place of the message
// among their arguments.
var logMethods = map[string]int{
	"Debug": 0, "Info": 0, "Warn": 0, "Error": 0,
	"DebugContext": 1, "InfoContext": 1, "WarnContext": 1, "ErrorContext": 1,
	"Log": 2, "LogAttrs": 2,
}

var formatVerb = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)

// TestEveryLogMessageIsInTheTable holds that docs/log.md has each message that the code logs, and no other.
func TestEveryLogMessageIsInTheTable(t *testing.T) {
	code := make(map[string]string)
	for _, dir := range []string{".", "core", "inspect", "ports", "internal/engine", "adapters"} {
		scanLogged(t, dir, code)
	}
	table := loggedInTable(t)
	for _, m := range slices.Sorted(maps.Keys(code)) {
		if !table[m] {
			t.Errorf("%s logs %q, which docs/log.md does not have", code[m], m)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(table)) {
		if code[m] == "" {
			t.Errorf("docs/log.md has %q, which nothing logs", m)
		}
	}
}

// loggedInTable returns the messages of docs/log.md: the first cell of each row, in backticks.
func loggedInTable(t *testing.T) map[string]bool {
	text, err := os.ReadFile(filepath.Join("docs", "log.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := make(map[string]bool)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "| `"); ok {
			message, _, _ := strings.Cut(rest, "`")
			if table[message] {
				t.Errorf("docs/log.md has %q twice", message)
			}
			table[message] = true
		}
	}
	return table
}

// scanLogged adds the messages of the packages below dir to found, each with where it stands. Of the root only
// the package itself is scanned.
func scanLogged(t *testing.T, dir string, found map[string]string) {
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && dir == "." && path != "." {
			return filepath.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			for _, e := range messageExprs(n) {
				for _, m := range messagesOf(file, e) {
					found[m] = set.Position(e.Pos()).String()
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// messageExprs returns the messages that a node logs: an argument of a logger's method, or what is given to
// the field message of a line that is logged after a lock is released.
func messageExprs(n ast.Node) []ast.Expr {
	switch n := n.(type) {
	case *ast.CallExpr:
		if f, ok := n.Fun.(*ast.SelectorExpr); ok {
			if at, logs := logMethods[f.Sel.Name]; logs && len(n.Args) > at && isLogger(f.X) {
				return n.Args[at : at+1]
			}
		}
	case *ast.KeyValueExpr:
		if key, ok := n.Key.(*ast.Ident); ok && key.Name == "message" {
			return []ast.Expr{n.Value}
		}
	case *ast.AssignStmt:
		var list []ast.Expr
		for i, left := range n.Lhs {
			if f, ok := left.(*ast.SelectorExpr); !ok || f.Sel.Name != "message" {
				continue
			}
			if i >= len(n.Rhs) {
				continue
			}
			value := n.Rhs[i]
			if n.Tok == token.ADD_ASSIGN {
				value = &ast.BinaryExpr{X: left, OpPos: value.Pos(), Op: token.ADD, Y: value}
			}
			list = append(list, value)
		}
		return list
	}
	return nil
}

// isLogger reports whether an expression names a logger: log, logger or Logger, or a call of logger.
func isLogger(e ast.Expr) bool {
	if c, ok := e.(*ast.CallExpr); ok {
		e = c.Fun
	}
	name := ""
	switch e := e.(type) {
	case *ast.Ident:
		name = e.Name
	case *ast.SelectorExpr:
		name = e.Sel.Name
	}
	return name == "log" || strings.EqualFold(name, "logger")
}

// messagesOf returns what an expression may be: a text with … for each part that varies, or each text that
// a function of the file returns. A field, as of a line that was collected elsewhere, is none.
func messagesOf(file *ast.File, e ast.Expr) []string {
	if c, ok := e.(*ast.CallExpr); ok {
		if f, ok := c.Fun.(*ast.Ident); ok {
			return returned(file, f.Name)
		}
	}
	if f, ok := e.(*ast.SelectorExpr); ok && f.Sel.Name == "message" {
		return nil
	}
	return []string{textOf(e)}
}

func returned(file *ast.File, name string) (list []string) {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok {
				list = append(list, textOf(r.Results[0]))
			}
			return true
		})
	}
	return list
}

func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil {
			return text
		}
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.CallExpr:
		if f, ok := e.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "Sprintf" {
			return formatVerb.ReplaceAllString(textOf(e.Args[0]), "…")
		}
	}
	return "…"
}
