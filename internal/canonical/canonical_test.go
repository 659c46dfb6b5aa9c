package canonical_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/canonical"
	"github.com/skeinq/skein/internal/vectors"
)

// The errors of the cases that are refused.
var refusals = map[string]error{
	"syntax": canonical.ErrSyntax,
	"number": canonical.ErrNumber,
	"member": canonical.ErrMember,
	"text":   canonical.ErrText,
}

func TestVectors(t *testing.T) {
	cases, err := vectors.Read[vectors.Canonical]("canonical.json")
	if err != nil {
		t.Fatal(err)
	}

	for _, c := range cases {
		given := bytes.Clone(c.Given())
		got, err := canonical.JSON(given)
		if string(got) != c.Want || !errors.Is(err, refusals[c.Refused]) {
			t.Errorf("%s: %s: %s, %v; want %s, %q", c.About, c.Given(), got, err, c.Want, c.Refused)
		}
		if !bytes.Equal(given, c.Given()) {
			t.Errorf("%s: the argument was changed", c.About)
		}
	}
}

// An error names the cure, and quotes only the beginning of a long text.
func TestErrorsNameTheCure(t *testing.T) {
	for text, cure := range map[string]string{
		`{"id":12345678901234567890}`: `write it as a string, such as "12345678901234567890"`,
		strings.Repeat("7", 100_000):  "write it as a string",
		`{"a":1,"a":2}`:               "send each member once",
		`{"` + strings.Repeat("é", 99) + `":1,"` + strings.Repeat("é", 99) + `":1}`: "send each member once",
		`"\ud83d"`:                   "send whole characters",
		"\"\xff\"":                   "encode it as UTF-8",
		`{"a":1`:                     "give one JSON value",
		``:                           "give one JSON value",
		strings.Repeat("[", 100_000): "give one JSON value",
	} {
		_, err := canonical.JSON([]byte(text))
		if err == nil {
			t.Errorf("%.40s: no error", text)
			continue
		}
		said := err.Error()
		if !strings.Contains(said, cure) || len(said) > 400 || strings.ContainsRune(said, '\uFFFD') {
			t.Errorf("%.40s: %s", text, said)
		}
	}
}

// Doubles other than 0 are written as encoding/json writes them.
func TestDoubles(t *testing.T) {
	for _, bits := range []uint64{
		1, 1 << 52, 0x7fefffffffffffff, 0x3ff0000000000001, 0x4340000000000000, 0x3eb0c6f7a0b5ed8d,
	} {
		assertDouble(t, math.Float64frombits(bits))
	}
	for exponent := -320; exponent <= 308; exponent++ {
		double, err := strconv.ParseFloat("1.7e"+strconv.Itoa(exponent), 64)
		if err != nil {
			t.Fatal(err)
		}
		assertDouble(t, double)
		assertDouble(t, -double)
	}
}

func assertDouble(t *testing.T, double float64) {
	t.Helper()
	want, err := json.Marshal(double)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := canonical.JSON(want); string(got) != string(want) || err != nil {
		t.Errorf("%s: %s, %v", want, got, err)
	}
}

// Deep nesting costs no more than its size, whatever the order of the members is.
func TestDeepObjects(t *testing.T) {
	const depth = 9_000
	given := strings.Repeat(`{"b":`, depth) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat(`,"a":1}`, depth)
	got, err := canonical.JSON([]byte(given))
	if err != nil || len(got) != len(given) || !bytes.HasPrefix(got, []byte(`{"a":1,"b":{"a":1,"b":{`)) {
		t.Errorf("%.60s, %v", got, err)
	}
}

// The memory that a value takes is a small multiple of its size.
func TestMemory(t *testing.T) {
	for name, given := range map[string]string{
		"a list of numbers": "[" + strings.Repeat("0,", 200_000) + "0]",
		"lists of lists":    "[" + strings.Repeat("[[]],", 100_000) + "0]",
		"a text":            `"` + strings.Repeat(`\n`, 200_000) + `"`,
		"empty objects":     "[" + strings.Repeat("{},", 150_000) + "0]",
		"objects":           "[" + strings.Repeat(`{"b":0,"a":0},`, 30_000) + "0]",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err := canonical.JSON([]byte(given)); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 100*uint64(len(given)) {
			t.Errorf("%s: %d bytes for %d", name, took, len(given))
		}
	}
}

// The canonical form of JSON has the same value, is its own canonical form, and is refused only for
// a reason.
func FuzzJSON(f *testing.F) {
	cases, err := vectors.Read[vectors.Canonical]("canonical.json")
	if err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		f.Add(c.Given())
	}

	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := canonical.JSON(data)
		if err != nil {
			if json.Valid(data) == errors.Is(err, canonical.ErrSyntax) && !errors.Is(err, canonical.ErrText) {
				t.Fatalf("%q: %v", data, err)
			}
			return
		}

		if again, err := canonical.JSON(got); !bytes.Equal(again, got) || err != nil {
			t.Fatalf("%q: %s, and of that %s, %v", data, got, again, err)
		}

		var before, after any
		if err := json.Unmarshal(data, &before); err != nil {
			t.Fatalf("%q: %v", data, err)
		}
		if err := json.Unmarshal(got, &after); err != nil || !reflect.DeepEqual(before, after) {
			t.Fatalf("%q: %s is another value: %v", data, got, err)
		}
	})
}
