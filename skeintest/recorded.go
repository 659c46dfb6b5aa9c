package skeintest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/skeinq/skein"
)

// AssertDecodes fails the test for each recorded payload that the queue's codec does not decode, or
// of which it loses a field. Record payloads in the bytes in which an earlier version of the program
// pushed them, one of each shape. Then the test tells whether the new version still reads them.
//
// A field of JSON is lost if the codec decodes the payload to an equal value whatever the field has
// in it. So a renamed field is lost, unless a method UnmarshalJSON reads the old name too. Fields
// that are null, {} or [] are not checked. A payload that is not JSON is only decoded. To lose a
// field on purpose, remove it from the record.
func AssertDecodes[P any](t TB, q *skein.Queue[P], recorded ...string) {
	t.Helper()
	codec := q.Codec()
	if codec == nil {
		t.Fatalf("assert decodes: the queue is empty; make it with NewQueue")
		return
	}

	for i, data := range recorded {
		value, err := codec.Decode([]byte(data))
		if err != nil {
			t.Errorf("recorded payload %d of queue %s, %s: the codec does not decode it: %v",
				i+1, q.Name(), printable([]byte(data)), err)
			continue
		}
		if !json.Valid([]byte(data)) {
			continue
		}

		unread := func(changed []byte) bool {
			other, err := codec.Decode(changed)
			return err == nil && reflect.DeepEqual(value, other)
		}
		if lost := lostFields([]byte(data), unread); len(lost) > 0 {
			t.Errorf("recorded payload %d of queue %s, %s: the codec loses %s; read it, or remove it from the record "+
				"if nothing needs it", i+1, q.Name(), printable([]byte(data)), strings.Join(lost, ", "))
		}
	}
}

// lostFields returns the fields of a JSON value whose content does not matter. unread reports
// whether a changed value decodes to the same.
func lostFields(data []byte, unread func(changed []byte) bool) []string {
	s := fieldScan{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), unread: unread}
	s.decoder.UseNumber()
	return s.value("").lost
}

// fieldScan reads a JSON value, which is valid, and tries each of its scalars.
type fieldScan struct {
	data    []byte
	decoder *json.Decoder
	unread  func(changed []byte) bool
}

// scanned is what a scan has found of one value.
type scanned struct {
	// lost are the fields that are lost. If all of the value is lost, it is the value alone.
	lost []string
	// scalars is the number of the scalars in the value, lostScalars of those that are lost.
	scalars, lostScalars int
}

func (s *fieldScan) value(name string) (found scanned) {
	from := s.start()
	token, err := s.decoder.Token()
	if err != nil {
		return scanned{}
	}

	switch token {
	case json.Delim('{'):
		for s.decoder.More() {
			field, err := s.decoder.Token()
			if err != nil {
				return scanned{}
			}
			found.add(s.value(joined(name, field.(string))))
		}
		_, _ = s.decoder.Token()
	case json.Delim('['):
		for i := 0; s.decoder.More(); i++ {
			found.add(s.value(name + "[" + strconv.Itoa(i) + "]"))
		}
		_, _ = s.decoder.Token()
	case nil: // null has nothing to lose
	default:
		found.scalars = 1
		if s.ignored(from, int(s.decoder.InputOffset())) {
			found.lostScalars = 1
		}
	}

	if name != "" && found.scalars > 0 && found.lostScalars == found.scalars {
		found.lost = []string{name}
	}
	return found
}

func (f *scanned) add(inner scanned) {
	f.lost = append(f.lost, inner.lost...)
	f.scalars += inner.scalars
	f.lostScalars += inner.lostScalars
}

func joined(name, field string) string {
	if name == "" {
		return field
	}
	return name + "." + field
}

// start returns where the next token begins.
func (s *fieldScan) start() int {
	at := int(s.decoder.InputOffset())
	for strings.IndexByte(" \t\r\n,:", s.data[at]) >= 0 {
		at++
	}
	return at
}

// ignored reports whether the value decodes to the same whatever is between two places.
func (s *fieldScan) ignored(from, to int) bool {
	for _, other := range [...]string{`null`, `true`, `false`, `1`, `2.5`, `"1"`, `"skeintest"`, `[]`, `{}`} {
		changed := bytes.Join([][]byte{s.data[:from], s.data[to:]}, []byte(other))
		if !s.unread(changed) {
			return false
		}
	}
	return true
}
