package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/skeinq/skein/internal/wrong"
)

func TestLinesAreCutToATerminal(t *testing.T) {
	for text, want := range map[string]string{
		"":                               "",
		"\n\n":                           "\n\n",
		"12345\nsix\n":                   "12345\nsix\n",
		"123456\nseven":                  "1234…\nseven",
		"1234567890\n12345\n":            "1234…\n12345\n",
		"世界世\n世界\n":                      "世界…\n世界\n",
		"a世界世\n":                         "a世…\n",
		"wide\x1b[31m\n":                 "wide…\n",
		"1234e\u0301\n1234e\u0301\u0308": "1234e\u0301\n1234e\u0301\u0308",
		"1234e\u03015\n":                 "1234…\n",
		"é\x00é\n":                       "é\\x0…\n",
		strings.Repeat("x", 1<<16):       "xxxx…",
	} {
		var b strings.Builder
		s := &screen{to: &cutter{to: &b, columns: 5}}
		if n, err := s.Write([]byte(text)); n != len(text) || err != nil || b.String() != want {
			t.Errorf("%.20q is shown as %q (%d, %v), want %q", text, b.String(), n, err, want)
		}
	}
}

// The faults leave room for the queues.
func TestTopShowsTheWorst(t *testing.T) {
	var b strings.Builder
	a := &app{process: process{stdout: &b}, output: "table"}
	seen := &top{lines: []statLine{{}}}
	for n := range mostWrong + 3 {
		seen.wrong = append(seen.wrong, wrong.Line{Text: fmt.Sprint("line ", n)})
	}

	if err := a.showTop(seen); err != nil {
		t.Fatal(err)
	}
	if text := b.String(); !strings.Contains(text, "line 5\nand 3 more\n\n") || strings.Contains(text, "line 6") {
		t.Errorf("it shows:\n%s", text)
	}

	b.Reset()
	seen.wrong = seen.wrong[:mostWrong]
	if err := a.showTop(seen); err != nil || strings.Contains(b.String(), "more") {
		t.Errorf("%v:\n%s", err, b.String())
	}
}
