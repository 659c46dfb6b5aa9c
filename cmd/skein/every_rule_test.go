package main

import (
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/ports"
)

// The command pushes and shows payloads of an Every queue as a program does.
func TestEachPushOfACommandCountsByEvery(t *testing.T) {
	store := memory.New(memory.Options{})
	if _, err := store.Declare(t.Context(), ports.DeclareRequest{
		Queue:  "points",
		Shards: 1,
		Merge:  core.MergeRule{Same: core.SamePush},
	}); err != nil {
		t.Fatal(err)
	}

	run := func(args ...string) string {
		t.Helper()
		code, out, problems := runOn(t, store, args...)
		if code != 0 {
			t.Fatalf("%v: %d, %s", args, code, problems)
		}
		return out
	}

	for _, score := range []string{"1", "2", "2", "3"} {
		run("job", "push", "points", "a", "--payload", "+5", "--score", score)
	}
	if got := strings.Count(run("job", "payloads", "points", "a", "-o", "csv"), "+5,"); got != 3 {
		t.Errorf("%d payloads are listed, want 3:\n%s", got, run("job", "payloads", "points", "a", "-o", "csv"))
	}

	run("job", "bury", "points", "a")
	run("morgue", "revive", "points", "a")
	run("job", "rm-first", "points", "a", "+5")
	if got := run("job", "payloads", "points", "a", "-o", "csv"); strings.Count(got, "+5,") != 2 ||
		strings.Contains(got, "every") {
		t.Errorf("after the first payload was removed:\n%s", got)
	}
}
