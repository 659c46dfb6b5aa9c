package shown

import (
	"reflect"
	"sync"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

// Of is the queue and the id that a value is about. Either may be empty.
type Of struct{ Queue, ID string }

// Redactor decides what is shown of the values that are not public. It must hide classes that it
// does not know.
type Redactor interface {
	// Shows reports whether values of the class are shown at all.
	Shows(class string) bool
	// Text returns a text as it may be shown.
	Text(class string, of Of, text string) string
	// Bytes returns bytes as they may be shown. The result may be data itself.
	Bytes(class string, of Of, data []byte) []byte
}

// Row is a T as it may be shown: only a [View] makes one, with each field redacted by its class.
// The zero value is a zero T.
type Row[T any] struct {
	value  T
	object *Object
}

// Value returns the redacted T. Its unexported fields, fields without a class and cursors are zero.
func (r *Row[T]) Value() *T { return &r.value }

// Object returns the values of the named fields, or nil for the zero Row.
func (r Row[T]) Object() *Object { return r.object }

// MarshalJSON implements json.Marshaler.
func (r Row[T]) MarshalJSON() ([]byte, error) {
	if r.object == nil {
		return []byte("{}"), nil
	}
	return r.object.MarshalJSON()
}

// Record returns the type T.
func (r Row[T]) Record() reflect.Type { return reflect.TypeFor[T]() }

// View makes rows of records about an entry or a queue.
type View[T any] struct {
	redactor Redactor
	of       Of
	fields   []Field
}

// NewView returns the view of records about a queue and an id. A record with a queue or an id of
// its own is about these.
func NewView[T any](r Redactor, of Of) View[T] {
	return View[T]{redactor: r, of: of, fields: fields(reflect.TypeFor[T]())}
}

// Row returns the redacted copy of a record.
func (v View[T]) Row(record *T) (row Row[T]) {
	row.object = redacted{v.redactor}.record(v.fields, v.of,
		reflect.ValueOf(record).Elem(), reflect.ValueOf(&row.value).Elem())
	return row
}

// Read returns the value of the field of a record, not redacted, as [Known] returns it. record is a
// pointer to the struct whose field it is.
func (f *Field) Read(record any) any {
	from := reflect.ValueOf(record).Elem().FieldByIndex(f.index)
	return Known(redacted{everything{}}.field(f, Of{}, from, reflect.New(from.Type()).Elem()))
}

// Known returns a value of an [Object], with the text or the number that a pointer points to. It
// returns nil for a nil pointer.
func Known(v any) any {
	p := reflect.ValueOf(v)
	switch {
	case p.Kind() != reflect.Pointer || p.Type() == reflect.TypeFor[*Object]():
		return v
	case p.IsNil():
		return nil
	}
	return p.Elem().Interface()
}

// everything is the redactor that shows everything.
type everything struct{}

func (everything) Shows(class string) bool                  { return class != "" }
func (everything) Text(_ string, _ Of, text string) string  { return text }
func (everything) Bytes(_ string, _ Of, data []byte) []byte { return data }

// redacted copies values, redacted.
type redacted struct{ by Redactor }

// record copies a struct to a zero one.
func (r redacted) record(list []Field, of Of, from, to reflect.Value) *Object {
	of = subject(list, of, from)

	o := &Object{}
	for _, f := range list {
		v := r.field(&f, of, from.FieldByIndex(f.index), to.FieldByIndex(f.index))
		if f.Name != "-" {
			o.Fields, o.Values = append(o.Fields, f), append(o.Values, v)
		}
	}
	return o
}

// subject returns what a record is about, if it has a queue or an id of its own.
func subject(list []Field, of Of, from reflect.Value) Of {
	identified := false
	for at := range list {
		v := from.FieldByIndex(list[at].index)
		switch list[at].Class {
		case Queue:
			of.Queue = v.String()
			if shard, ok := v.Interface().(core.Shard); ok {
				of.Queue = shard.Queue
			}
		case ID:
			if !identified && v.Kind() == reflect.String {
				of.ID, identified = v.String(), true
			}
		}
	}
	return of
}

// field copies a value, and returns it as an [Object] has it: nil if it is not shown.
func (r redacted) field(f *Field, of Of, from, to reflect.Value) any {
	data, isBytes := from.Interface().([]byte)
	shard, isShard := from.Interface().(core.Shard)
	switch {
	case !r.by.Shows(f.Class):
		return nil
	case isBytes:
		return r.bytes(f, of, data, to)
	case f.record != nil:
		return r.records(f, of, from, to)
	case isShard && f.second:
		return shard.Index
	case f.Class == Public, f.Class == Queue:
		to.Set(from)
		return plain(from)
	}

	switch v := from.Interface().(type) {
	case []core.Payload:
		return r.payloads(of, v, to)
	case []string:
		texts := r.texts(f.Class, of, v)
		to.Set(reflect.ValueOf(texts))
		return texts
	}

	text, isText := plain(from).(string)
	if !isText {
		return nil // only texts can be redacted
	}
	text = r.by.Text(f.Class, of, text)
	if from.Kind() == reflect.String {
		to.SetString(text)
	}
	return text
}

func (r redacted) texts(class string, of Of, list []string) (texts []string) {
	for _, text := range list {
		texts = append(texts, r.by.Text(class, of, text))
	}
	return texts
}

// records copies a record, a pointer to one, or a list of them.
func (r redacted) records(f *Field, of Of, from, to reflect.Value) any {
	switch from.Kind() {
	case reflect.Struct:
		return r.record(f.record, of, from, to)
	case reflect.Pointer:
		if from.IsNil() {
			return (*Object)(nil)
		}
		to.Set(reflect.New(from.Type().Elem()))
		return r.records(f, of, from.Elem(), to.Elem())
	}

	list := make([]*Object, from.Len())
	to.Set(reflect.MakeSlice(from.Type(), from.Len(), from.Len()))
	for at := range list {
		list[at] = r.record(f.record, of, from.Index(at), to.Index(at))
	}
	return list
}

// bytes copies bytes, and returns their text if f is the name under which they are.
func (r redacted) bytes(f *Field, of Of, data []byte, to reflect.Value) any {
	if data == nil && f.Class == Meta {
		return (*string)(nil)
	}
	data = r.by.Bytes(f.Class, of, data)
	to.SetBytes(data)
	if utf8.Valid(data) == f.second {
		return (*string)(nil)
	}
	return new(inText(data))
}

// payloadFields are the fields of a [PayloadRecord], for each row with payloads.
var payloadFields = sync.OnceValue(func() []Field { return fields(reflect.TypeFor[PayloadRecord]()) })

// payloads copies payloads.
func (r redacted) payloads(of Of, list []core.Payload, to reflect.Value) any {
	view := View[PayloadRecord]{redactor: r.by, of: of, fields: payloadFields()}
	objects, copies := make([]*Object, len(list)), make([]core.Payload, len(list))
	for at, p := range list {
		row := view.Row(&PayloadRecord{p.Score, p.Data, p.Meta})
		objects[at] = row.object
		copies[at] = core.Payload{Data: row.value.Data, Score: row.value.Score, Meta: row.value.Meta}
	}
	to.Set(reflect.ValueOf(copies))
	return objects
}
