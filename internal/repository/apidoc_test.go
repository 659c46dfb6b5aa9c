package repository

import (
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/token"
	"regexp"
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
	return decl.Recv == nil || ast.IsExported(typeName(decl.Recv.List[0].Type))
}

// unlinked matches texts that look like a link to a name, in text that go doc shows unchanged.
var unlinked = regexp.MustCompile(`\[\*?([a-z]+\.)?[A-Z][A-Za-z0-9_.]*\]`)

func TestLinksOfDocCommentsLeadSomewhere(t *testing.T) {
	for _, p := range goList(t, "./...") {
		if !p.library() || len(p.GoFiles) == 0 {
			continue
		}
		var files []*ast.File
		var fset *token.FileSet
		eachFile(t, p, func(f *token.FileSet, file *ast.File) { fset, files = f, append(files, file) })
		documented, err := doc.NewFromFiles(fset, files, p.ImportPath)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range docTexts(documented) {
			for _, link := range brokenLinks(documented.Parser().Parse(text)) {
				t.Errorf("package %s: %s leads nowhere, in: %s", p.path(), link, text)
			}
		}
	}
}

// docTexts lists the doc comments of a package.
func docTexts(p *doc.Package) []string {
	texts := []string{p.Doc}
	values := func(list []*doc.Value) {
		for _, v := range list {
			texts = append(texts, v.Doc)
		}
	}
	functions := func(list []*doc.Func) {
		for _, f := range list {
			texts = append(texts, f.Doc)
		}
	}
	values(p.Consts)
	values(p.Vars)
	functions(p.Funcs)
	for _, typ := range p.Types {
		texts = append(texts, typ.Doc)
		values(typ.Consts)
		values(typ.Vars)
		functions(typ.Funcs)
		functions(typ.Methods)
	}
	return texts
}

// brokenLinks lists the links of a comment that name nothing.
func brokenLinks(d *comment.Doc) []string {
	var links []string
	for _, block := range d.Content {
		paragraph, ok := block.(*comment.Paragraph)
		if !ok {
			continue
		}
		for _, text := range paragraph.Text {
			if plain, ok := text.(comment.Plain); ok {
				links = append(links, unlinked.FindAllString(string(plain), -1)...)
			}
		}
	}
	return links
}
