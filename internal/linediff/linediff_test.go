package linediff_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/skeinq/skein/internal/linediff"
)

// drawn writes a comparison with a sign before each line.
func drawn(lines []linediff.Line) string {
	var texts []string
	for _, l := range lines {
		switch l.Kind {
		case linediff.Skipped:
			texts = append(texts, fmt.Sprintf("(%d)", l.Count))
		default:
			texts = append(texts, string(" -+"[l.Kind])+l.Text)
		}
	}
	return strings.Join(texts, "|")
}

func TestOf(t *testing.T) {
	for _, tt := range []struct{ before, after, want string }{
		{"", "", " "},
		{"a", "a", " a"},
		{"a", "b", "-a|+b"},
		{"a\nb\nc", "a\nx\nc", " a|-b|+x| c"},
		{"a\nb\nc\nd", "b\nd", "-a| b|-c| d"},
		{"b\nd", "a\nb\nc\nd", "+a| b|+c| d"},
		{"a\na\na", "a\na", " a| a|-a"},
		{"a", "a\n", " a|+"},
		{"", "a\nb", "-|+a|+b"},
	} {
		if got := drawn(linediff.Of(tt.before, tt.after)); got != tt.want {
			t.Errorf("%q and %q: %q, want %q", tt.before, tt.after, got, tt.want)
		}
	}
}

func TestNear(t *testing.T) {
	before := "1\n2\n3\n4\n5\n6\n7\n8\n9"
	for _, tt := range []struct {
		after string
		n     int
		want  string
	}{
		{"1\n2\n3\n4\nx\n6\n7\n8\n9", 1, "(3)| 4|-5|+x| 6|(3)"},
		{"1\n2\nx\n4\n5\n6\n7\n8\n9", 1, " 1| 2|-3|+x| 4|(5)"},
		{"x\n2\n3\n4\n5\n6\n7\n8\ny", 0, "-1|+x|(7)|-9|+y"},
		{before, 3, "(9)"},
	} {
		lines := linediff.Of(before, tt.after)
		if got := drawn(linediff.Near(lines, tt.n)); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.after, got, tt.want)
		}
		if linediff.Changed(lines) == (tt.after == before) {
			t.Errorf("%q: changed %v", tt.after, linediff.Changed(lines))
		}
	}
}

// Texts that differ in very many lines are compared in bounded time and memory.
func TestOfLargeTexts(t *testing.T) {
	before, after := strings.Repeat("a\n", 64<<10), strings.Repeat("b\n", 64<<10)
	lines := linediff.Of("x\n"+before+"y", "x\n"+after+"y")
	if len(lines) != 2*(64<<10)+2 || lines[1].Kind != linediff.Removed || lines[1+64<<10].Kind != linediff.Added {
		t.Errorf("%d lines", len(lines))
	}
}

// Without the added lines a comparison is the first text, and without the removed ones the second.
func TestOfHasBothTexts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			return strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "b", "c"}), 1, 12).Draw(t, "lines"), "\n")
		})
		before, after := text.Draw(t, "before"), text.Draw(t, "after")
		var first, second []string
		for _, l := range linediff.Of(before, after) {
			if l.Kind != linediff.Added {
				first = append(first, l.Text)
			}
			if l.Kind != linediff.Removed {
				second = append(second, l.Text)
			}
		}
		if strings.Join(first, "\n") != before || strings.Join(second, "\n") != after {
			t.Errorf("%q and %q are not in %q", before, after, drawn(linediff.Of(before, after)))
		}
	})
}
