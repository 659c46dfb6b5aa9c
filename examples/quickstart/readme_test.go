package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The README shows this program but for its package clause and imports.
func TestReadmeShowsThisProgramInAtMost32Lines(t *testing.T) {
	program, readme := text(t, "main.go"), text(t, "../../README.md")
	_, body, _ := strings.Cut(program, "\n)\n\n")
	_, block, _ := strings.Cut(readme, "```go\n")
	block, _, closed := strings.Cut(block, "```\n")
	if !closed {
		t.Fatal("the README has no block of Go")
	}
	if diff := cmp.Diff(body, block); diff != "" {
		t.Errorf("the README's program (-main.go +README.md):\n%s", diff)
	}
	if lines := strings.Count(block, "\n"); lines > 32 {
		t.Errorf("it has %d lines, at most 32 are wanted", lines)
	}
}

func text(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
