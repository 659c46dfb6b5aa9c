package engine

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"testing"
)

// The parts of a shard are state machines: each gets the time as an argument, knows neither the shard
// nor another part, and starts, sends and locks nothing.
func TestThePartsOfAShardOnlyDecide(t *testing.T) {
	for part, files := range map[string][]string{
		"lease":  {"lease.go"},
		"turns":  {"turns.go", "outbox.go", "news.go"},
		"claims": {"claims.go", "buffer.go"},
	} {
		strangers := slices.DeleteFunc([]string{"Engine", "node", "pool", "shard", "lease", "turns", "claims"},
			func(name string) bool { return name == part })

		for _, file := range files {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, file, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if what := impure(n, strangers); what != "" {
					t.Errorf("%v: %s in the part %s of a shard", fset.Position(n.Pos()), what, part)
				}
				return true
			})
		}
	}
}

// impure names what a part of a shard must not do, or returns "". strangers are the types that it must
// not know.
func impure(n ast.Node, strangers []string) string {
	switch n := n.(type) {
	case *ast.GoStmt:
		return "a goroutine"
	case *ast.SendStmt:
		return "a send"
	case *ast.SelectorExpr:
		clock := []string{"Now", "Since", "Until", "AfterFunc", "NewTimer", "NewTicker", "Sleep"}
		switch x, _ := n.X.(*ast.Ident); {
		case x != nil && x.Name == "time" && slices.Contains(clock, n.Sel.Name):
			return "time." + n.Sel.Name
		case x != nil && x.Name == "sync":
			return "a lock"
		}
	case *ast.StarExpr:
		if x, _ := n.X.(*ast.Ident); x != nil && slices.Contains(strangers, x.Name) {
			return "the type " + x.Name
		}
	case *ast.CallExpr:
		if f, _ := n.Fun.(*ast.Ident); f != nil && f.Name == "signal" {
			return "a signal"
		}
	}
	return ""
}
