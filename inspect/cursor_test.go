package inspect_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
)

func TestCursorsSurviveAURL(t *testing.T) {
	ids := []string{"order-1", "a b/c?d&e=f#g%h+i", "Zürich 🧵", strings.Repeat("x", 512)}
	s := newFixture(t)
	s.pushAll(ids...)

	for _, order := range []inspect.SortBy{inspect.ByTime, inspect.ByID} {
		for job := range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{SortBy: order})) {
			query := url.Values{"after": {job.Cursor.String()}}.Encode()
			if got := "after=" + job.Cursor.String(); got != query {
				t.Errorf("the cursor of %q is escaped in a URL: %s", job.ID, query)
			}

			values, err := url.ParseQuery(query)
			if err != nil {
				t.Fatal(err)
			}
			back, err := inspect.ParseCursor(values.Get("after"))
			if err != nil || back != job.Cursor {
				t.Errorf("ParseCursor(%q) = %v, %v; want %v", values.Get("after"), back, err, job.Cursor)
			}
		}
	}
}

func TestCursorsSurviveJSON(t *testing.T) {
	s := newFixture(t)
	s.pushAll("order-1")

	type page struct{ Start, After inspect.Cursor }
	var in, out page
	for job := range must(t, s.Jobs(t.Context(), "orders", inspect.ListOptions{})) {
		in.After = job.Cursor
	}

	text, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}

	if err := json.Unmarshal(text, &out); err != nil || in != out {
		t.Errorf("%s reads as %v, %v; want %v", text, out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"After":"?"}`), &out); !errors.Is(err, inspect.ErrInvalidCursor) || out != in {
		t.Errorf("a bad cursor reads as %v, %v; want ErrInvalidCursor and no change", out, err)
	}
}

func TestTheStartIsEmptyText(t *testing.T) {
	c, err := inspect.ParseCursor("")
	if err != nil || c != (inspect.Cursor{}) || c.String() != "" {
		t.Errorf("ParseCursor of nothing = %v, %v; want the start", c, err)
	}
}

func TestOnlyWhatACursorWroteIsACursor(t *testing.T) {
	raw := base64.RawURLEncoding.EncodeToString
	for name, text := range map[string]string{
		"not base64":           "a*",
		"padded":               base64.URLEncoding.EncodeToString([]byte("\x05ab")) + "=",
		"another alphabet":     base64.RawStdEncoding.EncodeToString([]byte("\x05\xff\xef\xff")),
		"a line break":         raw([]byte("\x05order-1"))[:4] + "\n" + raw([]byte("\x05order-1"))[4:],
		"loose bits":           "BWF",
		"no id":                raw([]byte("\x05")),
		"a cut number":         raw([]byte("\xff")),
		"a number too long":    raw([]byte("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7fid")),
		"a number too large":   raw([]byte("\x81\x80\x80\x80\x80\x80\x80\x10id")),
		"an unusual number":    raw([]byte("\x85\x00id")),
		"an id with a newline": raw([]byte("\x05a\nb")),
		"an id not in UTF-8":   raw([]byte("\x05a\xff")),
		"an id too long":       raw([]byte("\x05" + strings.Repeat("x", 513))),
		"far too long":         strings.Repeat("A", 1<<20),
	} {
		if c, err := inspect.ParseCursor(text); !errors.Is(err, inspect.ErrInvalidCursor) || c != (inspect.Cursor{}) {
			t.Errorf("%s: ParseCursor = %v, %v; want ErrInvalidCursor", name, c, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	for _, seed := range []string{"", "BW9yZGVyLTE", "gICAgICAgBBpZA", "AHg", "*", "BWF"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := inspect.ParseCursor(text)
		switch {
		case err == nil && c.String() != text:
			t.Errorf("ParseCursor(%q) accepts what String writes as %q", text, c)
		case err != nil && (!errors.Is(err, inspect.ErrInvalidCursor) || c != inspect.Cursor{}):
			t.Errorf("ParseCursor(%q) = %v, %v; want ErrInvalidCursor", text, c, err)
		}
	})
}
