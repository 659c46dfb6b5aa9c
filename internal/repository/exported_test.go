package repository

import (
	"errors"
	"flag"
	"go/ast"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/exported")

// The exported names of a public package are frozen for its users. So a new name is a decision,
// and shows in the change that adds it:
// go test ./internal/repository -run TestExportedNames -update
func TestExportedNames(t *testing.T) {
	const dir = "internal/repository/testdata/exported"
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for _, p := range slices.Concat(goList(t, "./..."), goList(t, "-C", "adapters/prometheus", "./..."), goList(t, "-C", "adapters/otel", "./...")) {
		if !p.library() || p.program() {
			continue
		}
		var names []string
		eachFile(t, p, func(_ *token.FileSet, file *ast.File) {
			for _, decl := range file.Decls {
				names = append(names, exported(decl)...)
			}
		})
		slices.Sort(names)
		name := strings.ReplaceAll(strings.TrimPrefix(p.ImportPath, "github.com/skeinq/"), "/", "_") + ".txt"
		want = append(want, name)
		got := strings.Join(slices.Compact(names), "\n") + "\n"
		path := filepath.Join(dir, name)
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		kept, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Split(string(kept), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s exports other names than %s has (-kept +exported); if that is meant, run go test ./internal/repository -run TestExportedNames -update\n%s",
				p.path(), path, diff)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !slices.Contains(want, entry.Name()) {
			t.Errorf("%s/%s is of no public package", dir, entry.Name())
		}
	}
}

// exported lists the exported names of a declaration: functions, methods, types, their fields and
// methods, constants and variables.
func exported(decl ast.Decl) []string {
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		switch {
		case !decl.Name.IsExported() || !receiverExported(decl):
			return nil
		case decl.Recv == nil:
			return []string{"func " + decl.Name.Name}
		}
		return []string{"method " + typeName(decl.Recv.List[0].Type) + "." + decl.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range decl.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				if spec.Name.IsExported() {
					names = append(append(names, "type "+spec.Name.Name), members(spec)...)
				}
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					if name.IsExported() {
						names = append(names, decl.Tok.String()+" "+name.Name)
					}
				}
			}
		}
		return names
	}
	return nil
}

// members lists the exported fields of a struct and the methods of an interface, and what
// either embeds.
func members(spec *ast.TypeSpec) []string {
	var fields *ast.FieldList
	kind := "field "
	switch t := spec.Type.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields, kind = t.Methods, "method "
	default:
		return nil
	}
	var names []string
	for _, field := range fields.List {
		for _, name := range field.Names {
			if name.IsExported() {
				names = append(names, kind+spec.Name.Name+"."+name.Name)
			}
		}
		if embedded := typeName(field.Type); len(field.Names) == 0 && ast.IsExported(embedded) {
			names = append(names, "embedded "+spec.Name.Name+"."+embedded)
		}
	}
	return names
}

// typeName is the name of a type without its package, pointer or type arguments, empty for one
// that has none.
func typeName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return t.Sel.Name
	case *ast.StarExpr:
		return typeName(t.X)
	case *ast.IndexExpr:
		return typeName(t.X)
	case *ast.IndexListExpr:
		return typeName(t.X)
	}
	return ""
}
