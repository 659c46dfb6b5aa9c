package httpapi

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/shown"
)

// update writes the files made from the table instead of comparing them: go test
// ./adapters/httpapi -run Reference -update.
var update = flag.Bool("update", false, "write testdata/openapi.json and the reference in docs/reference/httpapi.md")

// Clients are generated from the document, so that each change of it has to be seen.
func TestReferenceOpenAPIDocument(t *testing.T) {
	h := newHouse(t, Options{Authorize: func(*http.Request, Action) error { return nil }})
	w := answerOf(h.api, request(http.MethodGet, base+"/openapi.json", ""))
	var indented any
	if err := json.Unmarshal(w.Body.Bytes(), &indented); err != nil {
		t.Fatal(err)
	}
	holds(t, filepath.Join("testdata", "openapi.json"), string(document(table(), true)))
	var golden any
	if err := json.Unmarshal(document(table(), true), &golden); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(golden, indented); diff != "" {
		t.Errorf("what is served differs (-want +got):\n%s", diff)
	}
	checkReferences(t, golden.(map[string]any), golden)
}

// The document names the ways to send credentials if the API asks for any, and states otherwise
// that none are needed.
func TestTheDocumentNamesCredentials(t *testing.T) {
	for _, tt := range []struct {
		o        Options
		security []map[string][]string
		schemes  []string
	}{
		{Options{}, []map[string][]string{}, nil},
		{Options{Authorize: func(*http.Request, Action) error { return nil }},
			[]map[string][]string{{"basic": {}}, {"bearer": {}}}, []string{"basic", "bearer"}},
	} {
		h := newHouse(t, tt.o)
		var document struct {
			Security   []map[string][]string
			Components struct {
				SecuritySchemes map[string]struct{ Type, Scheme string }
			}
		}
		if err := json.Unmarshal(answerOf(h.api,
			request(http.MethodGet, base+"/openapi.json", "")).Body.Bytes(), &document); err != nil {
			t.Fatal(err)
		}
		schemes := document.Components.SecuritySchemes
		if diff := cmp.Diff(tt.security, document.Security); diff != "" || len(schemes) != len(tt.schemes) {
			t.Errorf("security (-want +got):\n%s and %v, want %v", diff, schemes, tt.schemes)
		}
		for _, name := range tt.schemes {
			if schemes[name].Type != "http" || schemes[name].Scheme != name {
				t.Errorf("the scheme %s is %+v", name, schemes[name])
			}
		}
	}
}

// checkReferences holds that each $ref of the document leads somewhere.
func checkReferences(t *testing.T, document map[string]any, at any) {
	t.Helper()
	switch at := at.(type) {
	case []any:
		for _, inner := range at {
			checkReferences(t, document, inner)
		}
	case map[string]any:
		if to, ok := at["$ref"].(string); ok {
			var found any = document
			for _, part := range strings.Split(strings.TrimPrefix(to, "#/"), "/") {
				found, _ = found.(map[string]any)[part]
			}
			if found == nil {
				t.Errorf("%s leads nowhere", to)
			}
		}
		for _, inner := range at {
			checkReferences(t, document, inner)
		}
	}
}

// No two operations have one id, which clients make functions of.
func TestReferenceOperationIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, route := range table() {
		if id := operationID(&route); seen[id] {
			t.Errorf("%s twice", id)
		} else {
			seen[id] = true
		}
	}
}

const (
	referenceBegin = "<!-- The rest is made of the table of routes: " +
		"go test ./adapters/httpapi -run Reference -update -->\n"
	referencePath = "../../docs/reference/httpapi.md"
)

// TestReferenceInDocs holds the second half of docs/reference/httpapi.md to the table.
func TestReferenceInDocs(t *testing.T) {
	text, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), referenceBegin)
	if !found {
		t.Fatalf("%s has no line %q", referencePath, referenceBegin)
	}
	holds(t, referencePath, head+referenceBegin+reference())
}

func holds(t *testing.T, path, want string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("%s is not what the table says; look whether that is meant, and run "+
			"go test ./adapters/httpapi -run Reference -update (-want +got):\n%s",
			path, diff)
	}
}

// reference returns the routes, the types and the problems as Markdown.
func reference() string {
	var b strings.Builder
	var types []reflect.Type
	b.WriteString("\n## Routes\n")
	for _, r := range table() {
		fmt.Fprintf(&b, "\n### %s %s\n\n%s.\nRight: %s. ", r.method, r.path, r.summary, rightsOf(&r))
		if r.query != nil {
			table := parameters(r.query)
			fmt.Fprintf(&b, "Answers %s.\n", mention(&types, r.reply))
			if len(table) > 0 {
				b.WriteString("\n| parameter | type | |\n| --- | --- | --- |\n")
			}
			for _, p := range table {
				fmt.Fprintf(&b, "| `%s` | %s | %s%s |\n", p.name, mention(&types, p.typ), p.doc, bounds(&p))
			}
			continue
		}
		fmt.Fprintf(&b, "Takes %s, answers %s.\n", mention(&types, r.body), mention(&types, r.reply))
	}
	b.WriteString("\n## Types\n")
	mention(&types, reflect.TypeFor[service.Problem]())
	for at := 0; at < len(types); at++ {
		fmt.Fprintf(&b, "\n### %s\n\n", typeName(types[at]))
		fields := shown.Fields(types[at])
		if len(fields) == 0 {
			b.WriteString("`{}`\n")
			continue
		}
		b.WriteString("| field | type | |\n| --- | --- | --- |\n")
		for _, f := range fields {
			name := "`" + f.Name + "`"
			if f.Optional {
				name += "?"
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", name, mention(&types, f.Type), f.Doc)
		}
	}
	b.WriteString("\n## Problems\n\n| type: `urn:skein:problem:` and | status | |\n| --- | --- | --- |\n")
	for _, p := range service.Problems {
		fmt.Fprintf(&b, "| `%s` | %d | %s |\n", p.Name, p.Status, p.Title)
	}
	return b.String()
}

// rightsOf names the verbs that a request needs the right for.
func rightsOf(r *route) string {
	if r.query == nil {
		return fmt.Sprintf("`%s`", r.verb)
	}
	in := reflect.New(r.query)
	if f := in.Elem().FieldByName("Payloads"); f.IsValid() {
		f.SetInt(1)
	}
	a := r.asks("", in.Interface())
	switch {
	case Verb(a.Verb) != r.verb && in.Elem().FieldByName("Payloads").IsValid():
		return fmt.Sprintf("`%s`, with payloads `%s`", r.verb, a.Verb)
	}
	return fmt.Sprintf("`%s`", a.Verb)
}

func bounds(p *parameter) (text string) {
	if p.deflt != "" {
		text += ". Default " + p.deflt
	}
	if p.enum != nil {
		text += ". One of " + strings.Join(p.enum, ", ")
	}
	if p.most > 0 {
		text += fmt.Sprintf(". At most %d", p.most)
	}
	return text
}

// mention names a type, and notes structs to be explained.
func mention(types *[]reflect.Type, t reflect.Type) string {
	t = recordOf(t)
	switch schema := (schemas{}).of(t); {
	case t.Kind() == reflect.Pointer:
		return mention(types, t.Elem())
	case t.Kind() == reflect.Slice && schema["type"] == "array":
		return "list of " + mention(types, t.Elem())
	case t.Kind() == reflect.Map:
		return "object of " + mention(types, t.Elem())
	case schema["$ref"] != nil:
		if !slices.Contains(*types, t) {
			*types = append(*types, t)
		}
		return fmt.Sprintf("[%s](#%s)", typeName(t), strings.ToLower(typeName(t)))
	case schema["format"] == "date-time":
		return "time"
	case len(schema) == 0:
		return "any JSON"
	case t.String() == "time.Duration":
		return "duration"
	default:
		return fmt.Sprint(schema["type"])
	}
}
