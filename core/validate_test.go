package core_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/skeinq/skein/core"
)

func TestValidateID(t *testing.T) {
	valid := []string{
		"1", " ", "order-42", "заказ-7", "日本", "{x}/y", "a\u00a0b", "\ufffd", "👩‍👩‍👧",
		strings.Repeat("a", core.MaxIDBytes), strings.Repeat("é", core.MaxIDBytes/2),
	}
	for _, id := range valid {
		if err := core.ValidateID(id); err != nil {
			t.Errorf("%q: %v", id, err)
		}
	}

	invalid := map[string]string{
		"empty":                     "",
		"too long":                  strings.Repeat("a", core.MaxIDBytes+1),
		"too long in bytes":         strings.Repeat("é", core.MaxIDBytes/2) + "a",
		"not UTF-8":                 "a\xff",
		"cut within a character":    "日本"[:4],
		"a surrogate":               "\xed\xa0\x80",
		"NUL":                       "a\x00",
		"a line break":              "a\n",
		"delete":                    "a\x7f",
		"a control character of C1": "a\u0085",
	}

	for name, id := range invalid {
		if err := core.ValidateID(id); !errors.Is(err, core.ErrInvalidID) {
			t.Errorf("%s: got %v, want ErrInvalidID", name, err)
		}
	}
}

func FuzzValidateID(f *testing.F) {
	for _, id := range []string{
		"", "order-42", "日本", "a\xff", "a\x00", "a\u0085", strings.Repeat("a", core.MaxIDBytes+1),
	} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		allowed := id != "" && len(id) <= core.MaxIDBytes && utf8.ValidString(id)
		for _, r := range id {
			allowed = allowed && !unicode.IsControl(r)
		}
		err := core.ValidateID(id)
		if allowed != (err == nil) || !allowed && !errors.Is(err, core.ErrInvalidID) {
			t.Fatalf("%q, which the rules allow: %v: %v", id, allowed, err)
		}
	})
}

func TestValidateQueue(t *testing.T) {
	tests := []struct {
		name   string
		queue  string
		shards int
		valid  bool
	}{
		{"plain", "orders", 5, true},
		{"every kind of character", "aZ09_-.:", 1, true},
		{"the longest name", strings.Repeat("q", core.MaxQueueNameBytes), 5, true},
		{"the most shards", "orders", core.MaxShards, true},
		{"dots among others", "a.b..", 5, true},
		{"no name", "", 5, false},
		{"this directory", ".", 5, false},
		{"the directory above", "..", 5, false},
		{"a longer name", strings.Repeat("q", core.MaxQueueNameBytes+1), 5, false},
		{"a slash", "orders/eu", 5, false},
		{"a brace, which would move its slot", "{orders", 5, false},
		{"a space", "my orders", 5, false},
		{"a letter outside ASCII", "órders", 5, false},
		{"not UTF-8", "orders\xff", 5, false},
		{"no shards", "orders", 0, false},
		{"negative shards", "orders", -1, false},
		{"too many shards", "orders", core.MaxShards + 1, false},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := core.ValidateQueue(tt.queue, tt.shards); (err == nil) != tt.valid ||
				!tt.valid && !errors.Is(err, core.ErrInvalidQueue) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestValidateQueueReportsBothMistakes(t *testing.T) {
	err := core.ValidateQueue("my orders", 0)
	for _, want := range []string{`name "my orders"`, "with 0 shards"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
}

// scored returns an entry that is valid if its score is valid.
func scored(score float64) *core.Entry {
	return &core.Entry{ID: "id", Payload: payload("v", score)}
}

func TestScoresAreFiniteAndMinusZeroIsZero(t *testing.T) {
	for _, score := range []float64{
		0, math.Copysign(0, -1), -1, 1 << 53, math.MaxFloat64, math.SmallestNonzeroFloat64,
	} {
		if err := scored(score).Validate(); err != nil {
			t.Errorf("%v: %v", score, err)
		}
		if got := core.NormalScore(score); got != score || got == 0 && math.Signbit(got) {
			t.Errorf("%v is stored as %v", score, got)
		}
	}
	for _, score := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if err := scored(score).Validate(); !errors.Is(err, core.ErrInvalidScore) {
			t.Errorf("%v: got %v, want ErrInvalidScore", score, err)
		}
	}
}

func TestEntryValidate(t *testing.T) {
	valid := core.Entry{ID: "id", Payload: payload("v", 1)}
	tests := []struct {
		name   string
		change func(*core.Entry)
		want   error
	}{
		{"valid", func(*core.Entry) {}, nil},
		{"the empty payload is one", func(e *core.Entry) { e.Data = nil }, nil},
		{"any length of data", func(e *core.Entry) { e.Data = make([]byte, core.DefaultMaxPayloadBytes+1) }, nil},
		{"the longest Meta", func(e *core.Entry) { e.Meta = make([]byte, core.MaxMetaBytes) }, nil},
		{"at the epoch", func(e *core.Entry) { e.When = core.At(0) }, nil},
		{"at the last instant", func(e *core.Entry) { e.When = core.At(core.MaxInstant) }, nil},
		{"in any while", func(e *core.Entry) { e.When = core.In(math.MinInt64) }, nil},
		{"no id", func(e *core.Entry) { e.ID = "" }, core.ErrInvalidID},
		{"no number", func(e *core.Entry) { e.Score = math.NaN() }, core.ErrInvalidScore},
		{"a longer Meta", func(e *core.Entry) { e.Meta = make([]byte, core.MaxMetaBytes+1) }, core.ErrInvalidPayload},
		{"before the epoch", func(e *core.Entry) { e.When = core.At(-1) }, core.ErrInvalidTime},
		{"after the last instant", func(e *core.Entry) { e.When = core.At(core.MaxInstant + 1) }, core.ErrInvalidTime},
	}

	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			entry := valid
			tt.change(&entry)
			if err := entry.Validate(); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
}

func TestErrorText(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"as it is", "boom: é 日本\n\tat x", "boom: é 日本\n\tat x"},
		{"empty", "", ""},
		{"bytes that are not UTF-8", "a\xff\xfeb", "a\ufffdb"},
		{"NUL, which some stores refuse", "a\x00b", "a\ufffdb"},
		{"the longest", strings.Repeat("a", core.MaxErrorBytes), strings.Repeat("a", core.MaxErrorBytes)},
		{"longer", strings.Repeat("a", core.MaxErrorBytes+1), strings.Repeat("a", core.MaxErrorBytes)},
		{"cut between characters", "a" + strings.Repeat("é", core.MaxErrorBytes/2),
			"a" + strings.Repeat("é", core.MaxErrorBytes/2-1)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := core.ErrorText(tt.text); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCutText(t *testing.T) {
	for _, tt := range []struct {
		text string
		most int
		want string
	}{
		{"abc", 0, "abc"}, {"abc", -1, ""}, {"", 2, ""}, {"abc", 2, "ab"}, {"abc", 3, "abc"}, {"aéb", 2, "a"},
		{"日", 1, ""},
		{"\x80\x80\x80", 2, ""}, // no character begins in it
	} {
		if got := core.CutText(tt.text, tt.most); got != tt.want {
			t.Errorf("%q cut to %d: %q, want %q", tt.text, tt.most, got, tt.want)
		}
	}
}

func FuzzErrorText(f *testing.F) {
	for _, text := range []string{
		"", "boom", "a\x00\xff", strings.Repeat("日", core.MaxErrorBytes), strings.Repeat("\x00", core.MaxErrorBytes),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := core.ErrorText(text)
		switch {
		case len(got) > core.MaxErrorBytes:
			t.Fatalf("%d bytes", len(got))
		case !utf8.ValidString(got) || strings.ContainsRune(got, 0):
			t.Fatalf("%q", got)
		case core.ErrorText(got) != got:
			t.Fatal("what is kept changes when it is kept again")
		case utf8.ValidString(text) && !strings.ContainsRune(text, 0) && !strings.HasPrefix(text, got):
			t.Fatalf("%q became %q", text, got)
		case len(text) < core.MaxErrorBytes/3 && utf8.RuneCountInString(got) > utf8.RuneCountInString(text):
			t.Fatalf("%q grew to %q", text, got)
		case len(text) > core.MaxErrorBytes && utf8.ValidString(text) && len(got) <= core.MaxErrorBytes-utf8.UTFMax:
			t.Fatalf("cut to %d bytes", len(got))
		}
	})
}
