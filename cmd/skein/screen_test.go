package main

import (
	"strings"
	"testing"
)

// TestScreen holds that a terminal gets nothing that it would obey, in whichever parts it is
// written, and all else as it is.
func TestScreen(t *testing.T) {
	for text, want := range map[string]string{
		"a\tb\n":                     "a\tb\n",
		"\x1b[31mred":                `\x1b[31mred`,
		"\x1b]0;title\a":             `\x1b]0;title\a`,
		"\u009b31m":                  `\u009b31m`,
		"over\rwritten\b":            `over\rwritten\b`,
		"a\u202eb\u2066c\ufeff":      `a\u202eb\u2066c\ufeff`,
		"\xff\x9b31m":                `\xff\x9b31m`,
		"日本語 e\u0301 \U0001f600":     "日本語 e\u0301 \U0001f600",
		"{\"a\": \"\\u001b[31m\"}\n": "{\"a\": \"\\u001b[31m\"}\n",
	} {
		for part := 1; part <= len(text); part++ {
			var b strings.Builder
			s := &screen{to: &b}
			for rest := text; rest != ""; {
				n := min(part, len(rest))
				if written, err := s.Write([]byte(rest[:n])); written != n || err != nil {
					t.Fatal(written, err)
				}
				rest = rest[n:]
			}

			if b.String() != want {
				t.Errorf("%q in parts of %d became %q, want %q", text, part, b.String(), want)
			}
		}
	}
}
