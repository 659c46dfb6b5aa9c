package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/core"
)

func TestPathID(t *testing.T) {
	for _, test := range []struct{ name, path, want string }{
		{"plain", "docs/a b.md", "docs/a b.md"},
		{"unicode", "ünïcode/日本", "ünïcode/日本"},
		{"percent", "100%41", "100%2541"},
		{"newline, tab, DEL", "a\nb\tc\x7f", "a%0Ab%09c%7F"},
		{"C1 control", "a\u0085b", "a%C2%85b"},
		{"not UTF-8", "caf\xe9", "caf%E9"},
		{"a cut character", "\xf0\x9f", "%F0%9F"},
		{"the replacement character", "\ufffd", "\ufffd"},
		{"a long mark", "%~", "%25~"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got, whole := pathID(test.path); got != test.want || !whole {
				t.Errorf("pathID(%q) = %q, %v; want %q", test.path, got, whole, test.want)
			}
			checkID(t, test.path)
		})
	}
}

func TestPathIDOfLongPathsIsUnique(t *testing.T) {
	seen := map[string]string{}
	for _, path := range []string{
		strings.Repeat("a", core.MaxIDBytes),
		strings.Repeat("a", core.MaxIDBytes+1),
		strings.Repeat("a", core.MaxIDBytes+1) + "b",
		strings.Repeat("a", core.MaxIDBytes+1) + "\xff",
		strings.Repeat("é", core.MaxIDBytes),
		"x" + strings.Repeat("é", core.MaxIDBytes),
		strings.Repeat("\xff", core.MaxIDBytes),
	} {
		id := checkID(t, path)
		if other, ok := seen[id]; ok {
			t.Errorf("%.20q… and %.20q… have one id", path, other)
		}
		seen[id] = path
		if _, whole := pathID(path); whole != (len(path) == core.MaxIDBytes && path[0] == 'a') {
			t.Errorf("%.20q… of %d bytes: whole is %v", path, len(path), whole)
		}
	}
}

// checkID checks that the id of a path is valid, and that the path can be read from the queue's
// payload.
func checkID(t *testing.T, path string) string {
	t.Helper()
	id, pushed := newEvent(1, change{Path: path})
	if err := core.ValidateID(id); err != nil {
		t.Fatalf("%q: %v", path, err)
	}
	data, err := json.Marshal(pushed)
	if err != nil {
		t.Fatal(err)
	}
	var e Event
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	got, err := eventPath(id, e)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(path, got); diff != "" {
		t.Errorf("path of id %q (-want +got):\n%s", id, diff)
	}
	return id
}

func TestEventPathRefuses(t *testing.T) {
	for _, id := range []string{"%", "a%4", "%zz", "a%~" + strings.Repeat("0", 64)} {
		if got, err := eventPath(id, Event{}); err == nil {
			t.Errorf("eventPath(%q) = %q", id, got)
		}
	}
}
