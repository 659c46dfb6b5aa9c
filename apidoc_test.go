package skein_test

import (
	"go/ast"
	"go/token"
	"testing"
)

func TestEveryExportedNameIsDocumented(t *testing.T) {
	for _, p := range goList(t, "./...") {
		if !p.library() {
			continue
		}
		described := len(p.GoFiles) == 0
		eachFile(t, p, func(fset *token.FileSet, file *ast.File) {
			described = described || file.Doc != nil
			for _, name := range undocumented(file) {
				t.Errorf("%v: %s has no doc comment", fset.Position(name.Pos()), name.Name)
			}
		})
		if !described {
			t.Errorf("package %s has no doc comment", p.path())
		}
	}
}

// undocumented lists the exported names of a file that neither a comment of
// their own nor one of their group explains.
func undocumented(file *ast.File) []*ast.Ident {
	var bare []*ast.Ident
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Doc == nil && decl.Name.IsExported() && receiverExported(decl) {
				bare = append(bare, decl.Name)
			}
		case *ast.GenDecl:
			if decl.Doc == nil {
				bare = append(bare, bareSpecs(decl)...)
			}
		}
	}
	return bare
}

func bareSpecs(decl *ast.GenDecl) []*ast.Ident {
	var bare []*ast.Ident
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Doc == nil && spec.Name.IsExported() {
				bare = append(bare, spec.Name)
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if spec.Doc == nil && name.IsExported() {
					bare = append(bare, name)
				}
			}
		}
	}
	return bare
}

// receiverExported is true of functions and of the methods of exported types.
func receiverExported(decl *ast.FuncDecl) bool {
	if decl.Recv == nil {
		return true
	}
	receiver := decl.Recv.List[0].Type
	for {
		switch t := receiver.(type) {
		case *ast.StarExpr:
			receiver = t.X
		case *ast.IndexExpr:
			receiver = t.X
		case *ast.IndexListExpr:
			receiver = t.X
		case *ast.Ident:
			return t.IsExported()
		default:
			return true
		}
	}
}
