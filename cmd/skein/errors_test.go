package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// erring returns a store with a dead letter and a held job of one error.
func erring(t *testing.T) *memory.Store {
	t.Helper()
	store := memory.New(memory.Options{})
	declaredIn(t, store, "orders")
	failures := core.Failures{{Text: "charge 17: 503"}}
	letters := []core.DeadLetter{{
		ID: "a", Failures: failures, Group: "*pay.Error: charge #: #", Payloads: []core.Payload{{Data: []byte("x")}},
	}}
	jobs := []core.Job{{
		ID:       "b",
		State:    core.State{RetryCount: 1, Failures: failures, PerformAt: core.MaxInstant},
		Payloads: []core.Payload{{Data: []byte("x")}},
	}}
	queues, err := store.Queues(t.Context())
	must(t, err)
	q := queues[0]
	for index := range q.Shards {
		shard := core.Shard{Queue: "orders", Index: index}
		r := ports.ImportRequest{Shard: shard, Shards: q.Shards, Generation: q.Generation}
		for at := range letters {
			if core.ShardOf(letters[at].ID, q.Shards) == index {
				r.DeadLetters = append(r.DeadLetters, letters[at])
			}
		}
		if len(r.DeadLetters) > 0 {
			_, err := store.Import(t.Context(), r)
			must(t, err)
		}
		r.DeadLetters = nil
		for at := range jobs {
			if core.ShardOf(jobs[at].ID, q.Shards) == index {
				r.Jobs = append(r.Jobs, jobs[at])
			}
		}
		if len(r.Jobs) > 0 {
			_, err := store.Import(t.Context(), r)
			must(t, err)
		}
	}
	return store
}

// skein errors has a row for one error, and --by-queue what actions on it need.
func TestErrorsAreListedAndActedOn(t *testing.T) {
	store := erring(t)
	code, out, problems := runOn(t, store, "errors", "-o", "csv")
	if want := "charge #: #,orders,0,1,1,false,"; code != 0 || !strings.Contains(out, want) {
		t.Fatalf("%d %s; %q is missing:\n%s", code, problems, want, out)
	}
	code, out, problems = runOn(t, store, "errors", "orders", "--by-queue", "-o", "csv")
	if code != 0 || !strings.Contains(out, "orders,*pay.Error: charge #: #,0,1,0") ||
		!strings.Contains(out, "orders,charge #: #,0,0,1") {
		t.Fatalf("%d %s:\n%s", code, problems, out)
	}

	if code, out, problems = runOn(t, store, "job", "bury", "orders", "--all", "--group", "charge #: #",
		"--yes"); code != 0 || !strings.Contains(out, "1") {
		t.Errorf("%d %s %s", code, out, problems)
	}
	stats, err := inspect.New(store, inspect.Options{}).Stats(t.Context(), "orders")
	if must(t, err); stats[0].Dead != 2 || stats[0].Held != 0 {
		t.Errorf("%+v", stats[0].Counts)
	}

	file := filepath.Join(t.TempDir(), "dead.jsonl")
	must(t, os.WriteFile(file, []byte(`{"id":"z","error":"no route","payloads":[{"data":"x"}]}`), 0o600))
	if code, _, problems = runOn(t, store, "morgue", "import", "orders", file); code != 0 {
		t.Fatal(problems)
	}
	for limit, want := range map[string]string{"1": "the 1 largest of 3 errors are listed; --limit raises", "3": ""} {
		code, out, problems = runOn(t, store, "errors", "--limit", limit, "-o", "csv")
		if code != 0 || !strings.HasPrefix(problems, want) || (want == "") != (problems == "") {
			t.Errorf("%d %q:\n%s", code, problems, out)
		}
	}

	for args, want := range map[string]string{
		"errors --state lost":                        "retrying, held or dead",
		"errors --tag \x00":                          "--tag",
		"errors --since never":                       "--since",
		"errors --limit -1":                          "-1 groups",
		"errors nowhere":                             "nowhere",
		"job bury orders --fresh --group boom --yes": "FailedJobs",
	} {
		if code, _, problems := runOn(t, store, strings.Fields(args)...); code == 0 || !strings.Contains(problems, want) {
			t.Errorf("%s: %d %s; want %q", args, code, problems, want)
		}
	}
}
