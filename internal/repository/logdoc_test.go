package repository

import (
	"go/ast"
	"go/parser"
	"go/token"
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

// record is a message's levels and keys, each in order, and where it is logged.
type record struct {
	levels, keys map[string]bool
	where        string
}

func sorted(set map[string]bool) string { return strings.Join(slices.Sorted(maps.Keys(set)), " ") }

// TestEveryLogRecordIsInTheTable holds that docs/reference/log.md has each message that the code
// logs, with its levels and its keys, and no other.
func TestEveryLogRecordIsInTheTable(t *testing.T) {
	code := make(map[string]*record)
	for _, dir := range []string{".", "core", "inspect", "ports", "ports/storekit", "adapters/memory", "adapters/redis", "adapters/postgres", "internal/webhook"} {
		newLogSource(t, dir).scan(code)
	}
	newLogSource(t, "internal/engine", "internal/engine/execution", "internal/engine/guard", "internal/engine/membership", "internal/engine/report", "internal/engine/retention", "internal/engine/ticks").scan(code)
	table := loggedInTable(t)
	for _, m := range slices.Sorted(maps.Keys(code)) {
		is, said := code[m], table[m]
		if said == nil {
			t.Errorf("%s logs %q, which docs/reference/log.md does not have", is.where, m)
			continue
		}
		if sorted(is.levels) != sorted(said.levels) {
			t.Errorf("%s logs %q with levels %s, docs/reference/log.md says %s", is.where, m, sorted(is.levels), sorted(said.levels))
		}
		if sorted(is.keys) != sorted(said.keys) {
			t.Errorf("%s logs %q with keys %s, docs/reference/log.md says %s", is.where, m, sorted(is.keys), sorted(said.keys))
		}
		for key := range is.keys {
			if !snakeCase.MatchString(key) {
				t.Errorf("%s logs %q with the key %q, which is not snake_case", is.where, m, key)
			}
		}
		if strings.Contains(m, "…") {
			t.Errorf("%s: the message %q is not constant", is.where, m)
		}
	}
	for _, m := range slices.Sorted(maps.Keys(table)) {
		if code[m] == nil {
			t.Errorf("docs/reference/log.md has %q, which nothing logs", m)
		}
	}
}

var (
	snakeCase = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)
	quoted    = regexp.MustCompile("`([^`]*)`")
	level     = regexp.MustCompile(`Debug|Info|Warn|Error`)
)

// loggedInTable returns the rows of docs/reference/log.md: a message, its levels, its keys.
func loggedInTable(t *testing.T) map[string]*record {
	text, err := os.ReadFile(filepath.Join("docs", "reference", "log.md"))
	if err != nil {
		t.Fatal(err)
	}
	table := make(map[string]*record)
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if !strings.HasPrefix(line, "| `") || len(cells) < 5 {
			continue
		}
		message := strings.Trim(cells[1], " `")
		if table[message] != nil {
			t.Errorf("docs/reference/log.md has %q twice", message)
		}
		r := &record{levels: make(map[string]bool), keys: make(map[string]bool)}
		for _, l := range level.FindAllString(cells[2], -1) {
			r.levels[l] = true
		}
		for _, k := range quoted.FindAllStringSubmatch(cells[3], -1) {
			r.keys[k[1]] = true
		}
		table[message] = r
	}
	return table
}

// logSource is the source of packages whose log lines share functions.
type logSource struct {
	set    *token.FileSet
	files  []*ast.File
	consts map[string]string
	funcs  map[string][]*ast.FuncDecl
}

func newLogSource(t *testing.T, dirs ...string) *logSource {
	s := &logSource{set: token.NewFileSet(), consts: make(map[string]string), funcs: make(map[string][]*ast.FuncDecl)}
	var paths []string
	for _, dir := range dirs {
		found, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("no source in %s: %v", dir, err)
		}
		paths = append(paths, found...)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		s.files = append(s.files, file)
		ast.Inspect(file, s.declared)
	}
	return s
}

func (s *logSource) declared(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncDecl:
		s.funcs[n.Name.Name] = append(s.funcs[n.Name.Name], n)
	case *ast.ValueSpec:
		for i, name := range n.Names {
			if i < len(n.Values) {
				if text, ok := literal(n.Values[i]); ok {
					s.consts[name.Name] = text
				}
			}
		}
	}
	return true
}

// scan adds the package's log lines to found: calls of a logger's methods, and lines that are
// collected under a lock.
func (s *logSource) scan(found map[string]*record) {
	for _, list := range s.funcs {
		for _, f := range list {
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					s.call(f, n, found)
				case *ast.CompositeLit:
					s.line(f, n, found)
				}
				return true
			})
		}
	}
}

func (s *logSource) call(f *ast.FuncDecl, c *ast.CallExpr, found map[string]*record) {
	method, ok := c.Fun.(*ast.SelectorExpr)
	if !ok || !isLogger(method.X) {
		return
	}
	at, logs := logMethods[method.Sel.Name]
	if !logs || len(c.Args) <= at {
		return
	}
	levels := map[string]bool{strings.TrimSuffix(method.Sel.Name, "Context"): true}
	if at == 2 {
		levels = s.levels(f, c.Args[1])
	}
	s.add(found, c.Pos(), s.messages(c.Args[at]), levels, s.keys(f, c.Args[at+1:]))
}

// line is a composite literal with the fields level, message and attrs.
func (s *logSource) line(f *ast.FuncDecl, c *ast.CompositeLit, found map[string]*record) {
	fields := make(map[string]ast.Expr)
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if name, ok := kv.Key.(*ast.Ident); ok {
				fields[name.Name] = kv.Value
			}
		}
	}
	if message := fields["message"]; message != nil {
		s.add(found, c.Pos(), s.messages(message), s.levels(f, fields["level"]), s.keys(f, []ast.Expr{fields["attrs"]}))
	}
}

func (s *logSource) add(found map[string]*record, at token.Pos, messages []string, levels, keys map[string]bool) {
	for _, m := range messages {
		if found[m] == nil {
			found[m] = &record{levels: make(map[string]bool), keys: make(map[string]bool), where: s.set.Position(at).String()}
		}
		maps.Copy(found[m].levels, levels)
		maps.Copy(found[m].keys, keys)
	}
}

// isLogger reports whether an expression names a logger: log, logger or Logger, or a call of
// logger.
func isLogger(e ast.Expr) bool {
	if c, ok := e.(*ast.CallExpr); ok {
		e = c.Fun
	}
	name := nameOf(e)
	return name == "log" || strings.EqualFold(name, "logger")
}

func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

// literal returns the text of a string literal, or of several that are added up.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		x, okX := literal(e.X)
		y, okY := literal(e.Y)
		return x + y, okX && okY
	}
	return "", false
}

// messages returns the possible values of an expression: a text, or each text that a function of
// the package returns. A text that varies is "…". A field, as of a line that was collected
// elsewhere, has no values.
func (s *logSource) messages(e ast.Expr) (list []string) {
	if text, ok := literal(e); ok {
		return []string{text}
	}
	if f, ok := e.(*ast.SelectorExpr); ok && f.Sel.Name == "message" {
		return nil
	}
	c, ok := e.(*ast.CallExpr)
	if !ok || len(s.funcs[nameOf(c.Fun)]) == 0 {
		return []string{"…"}
	}
	for _, f := range s.funcs[nameOf(c.Fun)] {
		ast.Inspect(f, func(n ast.Node) bool {
			if r, ok := n.(*ast.ReturnStmt); ok {
				list = append(list, s.messages(r.Results[0])...)
			}
			return true
		})
	}
	return list
}

// levels returns the level that an expression names, or all that a variable is set to in the
// function.
func (s *logSource) levels(f *ast.FuncDecl, e ast.Expr) map[string]bool {
	found := make(map[string]bool)
	if name, ok := strings.CutPrefix(nameOf(e), "Level"); ok {
		found[name] = true
		return found
	}
	for _, value := range assigned(f, nameOf(e)) {
		maps.Copy(found, s.levels(f, value))
	}
	return found
}

// assigned returns the value that a function assigns to a variable.
func assigned(f *ast.FuncDecl, name string) (values []ast.Expr) {
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, left := range a.Lhs {
				if left, ok := left.(*ast.Ident); ok && left.Name == name {
					values = append(values, a.Rhs[i])
				}
			}
		}
		return true
	})
	return values
}

// keys returns the keys of logged values: keys and values in turn, attributes, and slices of these
// that the function has put together or that a function of the package returns.
func (s *logSource) keys(f *ast.FuncDecl, args []ast.Expr) map[string]bool {
	found := make(map[string]bool)
	for i := 0; i < len(args); i++ {
		if key, ok := s.key(args[i]); ok {
			found[key] = true
			i++ // its value
			continue
		}
		maps.Copy(found, s.attrKeys(f, args[i]))
	}
	return found
}

// attrKeys returns the keys of an expression that is an attribute or a slice of attributes.
func (s *logSource) attrKeys(f *ast.FuncDecl, e ast.Expr) map[string]bool {
	found := make(map[string]bool)
	add := func(f *ast.FuncDecl, list ...ast.Expr) {
		for _, e := range list {
			maps.Copy(found, s.attrKeys(f, e))
		}
	}
	switch e := e.(type) {
	case *ast.CompositeLit:
		add(f, e.Elts...)
	case *ast.Ident:
		for _, value := range assigned(f, e.Name) {
			if c, ok := value.(*ast.CallExpr); ok && nameOf(c.Fun) == "append" && nameOf(c.Args[0]) == e.Name {
				add(f, c.Args[1:]...)
				continue
			}
			add(f, value)
		}
	case *ast.CallExpr:
		if of, ok := e.Fun.(*ast.SelectorExpr); ok && nameOf(of.X) == "slog" {
			if key, ok := s.key(e.Args[0]); ok {
				found[key] = true
			}
			return found
		}
		if nameOf(e.Fun) == "append" {
			add(f, e.Args...)
		}
		for _, callee := range s.funcs[nameOf(e.Fun)] {
			ast.Inspect(callee, func(n ast.Node) bool {
				if r, ok := n.(*ast.ReturnStmt); ok {
					add(callee, r.Results...)
				}
				return true
			})
		}
	}
	return found
}

// key returns the text of a key: a literal, or a constant of the package.
func (s *logSource) key(e ast.Expr) (string, bool) {
	if text, ok := literal(e); ok {
		return text, true
	}
	if name, ok := e.(*ast.Ident); ok {
		text, ok := s.consts[name.Name]
		return text, ok
	}
	return "", false
}
