package httpapi

import (
	"cmp"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/skeinq/skein/internal/service"
	"github.com/skeinq/skein/internal/shown"
)

// object is a JSON object of the document.
type object = map[string]any

// document returns the routes as an OpenAPI 3.1 document. Its server is the document's own
// directory, so that it is correct wherever the API is mounted. Requests need credentials if
// authorized is true.
func document(routes []route, authorized bool) []byte {
	s := schemas{}
	paths := object{}
	for at := range routes {
		r := &routes[at]
		item, found := paths[r.path].(object)
		if !found {
			item = object{}
			paths[r.path] = item
		}
		item[strings.ToLower(r.method)] = s.operation(r)
	}

	failed := object{"description": "a problem; its type is one of " + problemNames(), "content": object{
		"application/problem+json": object{"schema": s.of(reflect.TypeFor[service.Problem]())},
	}}

	components, credentials := object{"schemas": s, "responses": object{"problem": failed}}, []any{}
	if authorized {
		components["securitySchemes"] = object{
			"basic": object{
				"type":        "http",
				"scheme":      "basic",
				"description": "a name and a password; skein serve takes its token as the password of any name",
			},
			"bearer": object{
				"type":        "http",
				"scheme":      "bearer",
				"description": "a token, such as that of skein serve",
			},
		}
		credentials = []any{object{"basic": []string{}}, object{"bearer": []string{}}}
	}

	text, err := json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title":   "Skein",
			"version": "1",
			"description": "The contents of a Skein store, and actions on it. Bytes are in data if they are UTF-8, " +
				"and in data_base64 otherwise. Times are by the store's clock unless a description states otherwise.",
		},
		"servers":    []any{object{"url": "."}},
		"paths":      paths,
		"security":   credentials,
		"components": components,
	}, "", "  ")
	if err != nil {
		return nil // maps of strings can be marshalled
	}
	return append(text, '\n')
}

func problemNames() string {
	var all []string
	for _, p := range service.Problems {
		all = append(all, p.Type)
	}
	return strings.Join(all, ", ")
}

// schemas are those of the document, by name.
type schemas map[string]any

func (s schemas) operation(r *route) object {
	op := object{
		"operationId":  operationID(r),
		"summary":      r.summary,
		"x-skein-verb": string(r.verb),
		"responses": object{
			"200":     object{"description": "done", "content": s.contents(r)},
			"default": object{"$ref": "#/components/responses/problem"},
		},
	}

	if r.polled {
		op["responses"].(object)["304"] = object{
			"description": "nothing except as_of has changed since the ETag of If-None-Match",
		}
	}
	if parameters := s.parameters(r); len(parameters) > 0 {
		op["parameters"] = parameters
	}
	if r.body != nil {
		op["requestBody"] = object{
			"required": true,
			"content":  object{"application/json": object{"schema": s.of(r.body)}},
		}
		s.close(r.body)
	}
	return op
}

// operationID is the method and the path in one word.
func operationID(r *route) string {
	id := strings.ToLower(r.method)
	for word := range strings.FieldsFuncSeq(r.path, func(c rune) bool { return strings.ContainsRune("/-.{}", c) }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return id
}

func (s schemas) contents(r *route) object {
	contents := object{formats[0].mediaType: object{"schema": s.of(r.reply)}}
	if r.rows {
		for _, f := range formats[1:] {
			contents[f.mediaType] = object{"schema": object{
				"type": "string",
				"description": "a line for each row of items; next, as_of and the number of unreached are in the " +
					"headers Skein-Next, Skein-As-Of and Skein-Unreached",
			}}
		}
	}
	return contents
}

func (s schemas) parameters(r *route) (list []any) {
	if strings.Contains(r.path, "{queue}") {
		list = append(list, object{
			"name":        "queue",
			"in":          "path",
			"required":    true,
			"schema":      object{"type": "string"},
			"description": "the queue",
		})
	}
	if r.action() && r.verb != VerbPush { // a push is not in the audit
		list = append(list, object{
			"name":        reasonHeader,
			"in":          "header",
			"required":    false,
			"schema":      object{"type": "string"},
			"description": "why, for the audit and the log; 512 bytes are kept",
		})
	}

	if r.query == nil {
		return list
	}

	for _, p := range parameters(r.query) {
		schema := s.of(p.typ)
		number := schema
		if items, ok := schema["items"].(object); ok {
			number = items
		}

		if number["type"] == "integer" {
			number["minimum"] = p.least
		}
		if p.most > 0 {
			schema["maximum"] = p.most
		}
		if p.enum != nil {
			schema["enum"] = p.enum
		}

		if p.deflt != "" {
			schema["default"] = p.deflt
			if n, err := strconv.Atoi(p.deflt); err == nil {
				schema["default"] = n
			}
		}

		list = append(list, object{"name": p.name, "in": "query", "description": p.doc, "schema": schema})
	}
	return list
}

// of returns the schema of a type. Structs get named schemas.
func (s schemas) of(t reflect.Type) object {
	t = recordOf(t)
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[time.Duration]():
		return object{"type": "string", "description": "as 5m"}
	case reflect.TypeFor[service.Step]():
		return object{"type": "string", "description": service.StepForms}
	case reflect.TypeFor[json.RawMessage]():
		return object{"type": "object"}
	case reflect.TypeFor[service.AnyJSON]():
		return object{}
	case reflect.TypeFor[service.Given]():
		return object{"type": "string", "minLength": 1}
	}

	switch t.Kind() {
	case reflect.Pointer:
		return s.of(t.Elem())
	case reflect.Slice:
		return object{"type": "array", "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	}
	return object{"type": "integer"}
}

// close marks the objects of a request as having no other fields.
func (s schemas) close(t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	schema, known := s[typeName(t)].(object)
	if _, closed := schema["additionalProperties"]; !known || closed {
		return
	}
	schema["additionalProperties"] = false
	for _, f := range shown.Fields(t) {
		s.close(f.Type)
	}
}

// named adds the schema of a struct and returns a reference to it.
func (s schemas) named(t reflect.Type) object {
	name := typeName(t)
	reference := object{"$ref": "#/components/schemas/" + name}
	if _, found := s[name]; found {
		return reference
	}

	schema := object{"type": "object"}
	s[name] = schema // before its fields, which may refer to it

	properties, required := object{}, []string{}
	for _, f := range shown.Fields(t) {
		property := s.of(f.Type)
		property["description"] = f.Doc
		properties[f.Name] = property
		if !f.Optional {
			required = append(required, f.Name)
		}
	}

	if len(properties) > 0 {
		schema["properties"] = properties
	}
	if len(required) > 0 {
		schema["required"] = required
	}

	return reference
}

// recordOf returns the type of the record that a row shows, and other types as they are.
func recordOf(t reflect.Type) reflect.Type {
	if row, ok := reflect.Zero(t).Interface().(interface{ Record() reflect.Type }); ok && t.Kind() == reflect.Struct {
		return row.Record()
	}
	return t
}

// documentNames are the names in the document of types that have another name in Go.
var documentNames = map[string]string{
	"ClaimedJob":        "ClaimedRow",
	"DeadLetter":        "DeadRow",
	"PayloadRecord":     "Payload",
	"QuarantinedRecord": "QuarantineRow",
	"Queue":             "QueueRow",
	"QueuedJob":         "JobRow",
}

// typeName is a type's name in the document: jobRow is JobRow, and list[jobRow] is JobRowList.
func typeName(t reflect.Type) string {
	name, of, generic := strings.Cut(recordOf(t).Name(), "[")
	if generic {
		of = of[strings.LastIndexByte(of, '.')+1 : len(of)-1]
		return nameInDocument(of) + nameInDocument(name)
	}
	return nameInDocument(name)
}

func nameInDocument(name string) string {
	return cmp.Or(documentNames[name], strings.ToUpper(name[:1])+name[1:])
}
