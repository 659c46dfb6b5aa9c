package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// update writes the files made from the commands instead of comparing them: go -C cmd/skein test
// -run Reference -update .
var update = flag.Bool("update", false, "write the reference in docs/reference/cli.md, and what scripts compare")

const (
	referenceBegin = "<!-- The rest is made of the commands: go -C cmd/skein test -run Reference -update . -->\n"
	referencePath  = "../../docs/reference/cli.md"
)

// commands are all commands, without those of cobra.
func commands() (all []*cobra.Command) {
	var below func(c *cobra.Command)
	below = func(c *cobra.Command) {
		all = append(all, c)
		for _, inner := range c.Commands() {
			below(inner)
		}
	}
	below((&app{}).root())
	return all
}

// TestReferenceInDocs holds the second half of docs/reference/cli.md to the commands.
func TestReferenceInDocs(t *testing.T) {
	text, err := os.ReadFile(referencePath)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := strings.Cut(string(text), referenceBegin)
	if !found {
		t.Fatalf("%s has no line %q", referencePath, referenceBegin)
	}

	want := head + referenceBegin + reference()
	if *update {
		if err := os.WriteFile(referencePath, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf(
			"%s is not what the commands say; look whether that is meant, "+
				"and run go -C cmd/skein test -run Reference -update .",
			referencePath,
		)
	}
}

// reference returns the commands as Markdown.
func reference() string {
	var b strings.Builder
	b.WriteString("\n## Exit codes\n\n| code | |\n| --- | --- |\n")
	for _, e := range exits {
		fmt.Fprintf(&b, "| %d | %s |\n", e.code, e.meaning)
	}

	b.WriteString("\n## Commands\n")
	for _, c := range commands() {
		if c.HasSubCommands() {
			if !c.HasParent() {
				b.WriteString("\nAll commands take:\n\n" + flagTable(c.PersistentFlags()))
			}
			continue
		}

		about := c.Short
		if c.Long != "" {
			about = c.Long
		}
		fmt.Fprintf(&b, "\n### %s\n\n%s\n\n    %s\n\nFor example:\n\n    %s\n", c.CommandPath(),
			wrapped(strings.TrimSuffix(about, ".")+"."), c.UseLine(),
			strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n    "))

		if table := flagTable(c.LocalNonPersistentFlags()); table != "" {
			b.WriteString("\n" + table)
		}
	}
	return b.String()
}

// wrapped returns paragraphs with lines of at most 100 columns.
func wrapped(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		line := 0
		var b strings.Builder
		for n, word := range strings.Fields(p) {
			switch {
			case n == 0:
			case line+1+len(word) > 100:
				b.WriteString("\n")
				line = 0
			default:
				b.WriteString(" ")
				line++
			}

			b.WriteString(word)
			line += len(word)
		}
		paragraphs[i] = b.String()
	}
	return strings.Join(paragraphs, "\n\n")
}

func flagTable(flags *pflag.FlagSet) string {
	var b strings.Builder
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Name == "help" {
			return
		}
		if b.Len() == 0 {
			b.WriteString("| flag | |\n| --- | --- |\n")
		}

		value, about := pflag.UnquoteUsage(f)
		name := "`--" + f.Name + "`"
		if value != "" {
			name = "`--" + f.Name + " " + value + "`"
		}
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}

		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" && f.DefValue != "0s" && f.DefValue != "[]" {
			about += ". Default " + f.DefValue
		}
		fmt.Fprintf(&b, "| %s | %s |\n", name, about)
	})
	return b.String()
}

// TestEachHelpHasAnExample of its own command.
func TestEachHelpHasAnExample(t *testing.T) {
	for _, c := range commands() {
		if !strings.Contains(c.Example, c.CommandPath()) {
			t.Errorf("%s --help has no example of it: %q", c.CommandPath(), c.Example)
		}
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: Short is %q; write a sentence without a full stop", c.CommandPath(), c.Short)
		}
	}
}

// quotedCall is a call of the command in a page: skein and the names that follow it.
var quotedCall = regexp.MustCompile("`skein((?: [a-z][a-z-]*)+)")

// TestPagesShowCommandsThatThereAre checks the calls of skein that pages quote.
func TestPagesShowCommandsThatThereAre(t *testing.T) {
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := filepath.Glob("../../docs/*/*.md")
	if err != nil {
		t.Fatal(err)
	}

	calls := 0
	for _, page := range slices.Concat(pages, guide, []string{"../../README.md"}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}

		for _, call := range quotedCall.FindAllStringSubmatch(string(text), -1) {
			calls++
			words := strings.Fields(call[1])
			c, rest, err := (&app{}).root().Find(words)
			if err != nil || c.HasSubCommands() && len(rest) > 0 {
				t.Errorf("%s shows skein %s, which is no command", page, strings.Join(words, " "))
			}
		}
	}

	if calls < 20 {
		t.Errorf("%d calls were found, fewer than there were", calls)
	}
}

// The page of the command names each row of an action's result.
func TestRowsOfAnActionAreInDocs(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/cli.md")
	must(t, err)
	own, _, _ := strings.Cut(string(page), "\n## Exit codes\n")
	for _, h := range allColumns.heads() {
		if !strings.Contains(own, "`"+h.name+"`") {
			t.Errorf("the page does not name the row %s", h.name)
		}
	}
}
