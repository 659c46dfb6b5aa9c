package httpapi

import (
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/skeinq/skein/internal/service"
)

// parameter is a field of a query. The field's tags contain its name, its type and its bounds.
type parameter struct {
	name, doc, deflt string
	index            []int
	typ              reflect.Type
	enum             []string
	least, most      int
}

// parameters returns the fields of a query's type, those of embedded ones too.
func parameters(t reflect.Type) (list []parameter) {
	for _, f := range reflect.VisibleFields(t) {
		name := f.Tag.Get("query")
		if name == "" {
			continue
		}

		p := parameter{name: name, doc: f.Tag.Get("doc"), deflt: f.Tag.Get("default"), index: f.Index, typ: f.Type}
		if enum := f.Tag.Get("enum"); enum != "" {
			p.enum = strings.Split(enum, ",")
		}
		p.least, _ = strconv.Atoi(f.Tag.Get("min"))
		p.most, _ = strconv.Atoi(f.Tag.Get("max")) // 0 is no bound; the table's test reads the tags
		list = append(list, p)
	}
	return list
}

// decodeQuery reads a query into a struct. It refuses a parameter that is unknown, repeated where
// only one is allowed, or out of bounds: a misspelt parameter must not list everything.
func decodeQuery(raw string, into reflect.Value) error {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return service.ProblemBadRequest.With("the query can't be read: %v", err)
	}

	known := parameters(into.Type())
	for name := range values {
		if !slices.ContainsFunc(known, func(p parameter) bool { return p.name == name }) {
			return service.ProblemBadRequest.With("unknown parameter %q; use %s", name, names(known))
		}
	}

	for _, p := range known {
		texts, given := values[p.name]
		if !given && p.deflt != "" {
			texts = []string{p.deflt}
		}

		field := into.FieldByIndex(p.index)
		if len(texts) > 1 && field.Kind() != reflect.Slice {
			return service.ProblemBadRequest.With("%s is given %d times; give it once", p.name, len(texts))
		}

		for _, text := range texts {
			if err := p.set(field, text); err != nil {
				return err
			}
		}
	}
	return nil
}

func names(list []parameter) string {
	if len(list) == 0 {
		return "none"
	}
	var all []string
	for _, p := range list {
		all = append(all, p.name)
	}
	return strings.Join(all, ", ")
}

// set reads one value.
func (p *parameter) set(field reflect.Value, text string) error {
	invalid := func(want string) error {
		return service.ProblemBadRequest.With("%s is %q; give %s", p.name, text, want)
	}

	switch field.Interface().(type) {
	case string:
		if !utf8.ValidString(text) {
			return invalid("UTF-8")
		}
		if p.enum != nil && !slices.Contains(p.enum, text) {
			return invalid("one of " + strings.Join(p.enum, ", "))
		}
		field.SetString(text)
	case bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return invalid("true or false")
		}
		field.SetBool(yes)
	case int:
		n, err := p.number(text)
		if err != nil {
			return err
		}
		field.SetInt(int64(n))
	case []int:
		n, err := p.number(text)
		if err != nil {
			return err
		}
		field.Set(reflect.Append(field, reflect.ValueOf(n)))
	case time.Time:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return invalid("a time such as 2026-01-02T15:04:05Z")
		}
		field.Set(reflect.ValueOf(at))
	case time.Duration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return invalid("a duration such as 5m")
		}
		field.SetInt(int64(d))
	case service.Step:
		step, ok := service.ParseStep(text)
		if !ok {
			return invalid(service.StepForms)
		}
		field.SetInt(int64(step))
	default:
		return service.ProblemBadRequest.With("%s can't be read", p.name)
	}
	return nil
}

func (p *parameter) number(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < p.least || p.most > 0 && n > p.most {
		if p.most > 0 {
			return 0, service.ProblemBadRequest.With("%s is %q; give a number from %d to %d",
				p.name, text, p.least, p.most)
		}
		return 0, service.ProblemBadRequest.With("%s is %q; give a number from %d", p.name, text, p.least)
	}
	return n, nil
}
