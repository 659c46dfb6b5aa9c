package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The README shows this program. At most 32 of its lines follow the imports.
func TestReadmeShowsThisProgramInAtMost32Lines(t *testing.T) {
	program, readme := text(t, "main.go"), text(t, "../../README.md")
	program = program[strings.Index(program, "package main"):]
	_, block, _ := strings.Cut(readme, "```go\npackage main\n")
	block, _, closed := strings.Cut("package main\n"+block, "```\n")
	if !closed {
		t.Fatal("the README has no program")
	}

	if diff := cmp.Diff(program, block); diff != "" {
		t.Errorf("the README's program (-main.go +README.md):\n%s", diff)
	}

	_, body, _ := strings.Cut(block, "\n)\n\n")
	if lines := strings.Count(body, "\n"); lines > 32 {
		t.Errorf("it has %d lines after the imports, at most 32 are wanted", lines)
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
