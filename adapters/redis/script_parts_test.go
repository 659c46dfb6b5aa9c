package redis

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	goredis "github.com/redis/go-redis/v9"
)

// A part of a script lists the names of other parts that it uses, and a part that others need
// lists the names that it defines.
func TestPartsSayWhatTheyUseAndDefine(t *testing.T) {
	parts := embedded(t)
	everything := map[string]bool{}
	for name, text := range parts {
		var defined []string
		for _, line := range regexp.MustCompile(`(?m)^local (?:function )?([\w, ]+)`).
			FindAllStringSubmatch(code(text), -1) {
			defined = append(defined, strings.Split(strings.TrimSpace(line[1]), ", ")...)
		}

		said := names(text, "Defines")
		if missing := without(said, defined); len(missing) > 0 {
			t.Errorf("%s says that it defines %v, and does not", name, missing)
		}
		if unsaid := without(defined, said); strings.HasPrefix(name, "lib/") && len(unsaid) > 0 {
			t.Errorf("%s defines %v, and does not say so", name, unsaid)
		}
		for _, name := range said {
			everything[name] = true
		}
	}

	for name, text := range parts {
		var used []string
		own := names(text, "Defines")
		for _, word := range regexp.MustCompile(`\w+`).FindAllString(code(text), -1) {
			if everything[word] && !slices.Contains(own, word) && !slices.Contains(used, word) && !isLocal(text, word) {
				used = append(used, word)
			}
		}

		said := names(text, "Uses")
		slices.Sort(used)
		slices.Sort(said)
		if diff := cmp.Diff(used, said, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s uses other names than it says (-used +said):\n%s", name, diff)
		}
	}
}

// A script's parts are joined in an order in which each comes after those that it uses.
func TestPartsFollowWhatTheyUse(t *testing.T) {
	for name, s := range scriptFlags {
		var defined []string
		for _, p := range s.script.Parts {
			text := read(p.Name)
			if missing := without(names(text, "Uses"), defined); len(missing) > 0 {
				t.Errorf("in the script %s, %s uses %v, which no part before it defines", name, p.Name, missing)
			}
			defined = append(defined, names(text, "Defines")...)
		}
	}
}

// An error names the file and the line that an operator can look at.
func TestErrorsNameTheLineOfAPart(t *testing.T) {
	for name, s := range scriptFlags {
		lines := strings.Split(s.script.Text, "\n")
		if len(s.script.Parts) == 0 {
			t.Fatalf("%s has no parts", name)
		}

		flags := "on @lua/" + s.script.Parts[len(s.script.Parts)-1].Name + ".lua:1."
		if got := s.script.Locate(refusal("ERR boom, on @user_script:1.")); !strings.HasSuffix(got.Error(), flags) {
			t.Errorf("the error of the flags of %s became %q, want %q", name, got, flags)
		}

		for _, p := range s.script.Parts {
			for i, line := range strings.Split(read(p.Name), "\n") {
				at := i + p.First - p.Skipped
				if line == "" || i < p.Skipped {
					continue
				}
				if lines[at-1] != line {
					t.Fatalf("line %d of %s is %q, want %q of %s", at, name, lines[at-1], line, p.Name)
				}

				said := refusal(fmt.Sprintf("ERR boom script: %s, on @user_script:%d.", s.script.SHA, at))
				want := fmt.Sprintf("on @lua/%s.lua:%d.", p.Name, i+1)
				if got := s.script.Locate(said); !strings.HasSuffix(got.Error(), want) ||
					!goredis.HasErrorPrefix(got, "boom") {
					t.Fatalf("the error %q became %q, want %q", said, got, want)
				}
			}
		}
	}

	for _, err := range []error{nil, goredis.Nil, errors.New("user_script:1"), refusal("LOADING")} {
		if got := turnScript.Locate(err); got != err {
			t.Errorf("the error %v became %v", err, got)
		}
	}
}

// names returns the names that a part's header lists after a word, such as "Uses".
func names(text, word string) []string {
	_, list, ok := strings.Cut(text, "\n-- "+word+": ")
	if !ok {
		if list, ok = strings.CutPrefix(text, "-- "+word+": "); !ok {
			return nil
		}
	}
	list, _, _ = strings.Cut(list, ".\n")
	return strings.Split(strings.ReplaceAll(list, "\n--  ", ""), ", ")
}

// code returns a part without its comments, its texts and the fields of its tables.
func code(text string) string {
	return regexp.MustCompile(`(?m)--.*$|'[^']*'|\.\w+`).ReplaceAllString(text, "")
}

// isLocal reports whether a part has a local of its own with a name.
func isLocal(text, name string) bool {
	return regexp.
		MustCompile(`(?m)(?:local (?:function )?|for |function[\w. ]*\()(?:\w+, )*` + name + `\b`).
		MatchString(code(text))
}

// without returns the names that the others lack.
func without(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}
