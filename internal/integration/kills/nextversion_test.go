package kills_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// otherVariable names a program made by `go test -c` of these tests in another version of the
// code, to run beside this one; by default the test makes one of the next version.
const otherVariable = "SKEIN_TEST_OTHER_VERSION"

// nextVersion has the changes that make the next version of the code. Its stored data have a higher
// number on both servers, and older programs may use these data. The schema has a new column, and
// the text of the scripts is different. In each file the old text is replaced by the new one; a
// file without an old text is added.
var nextVersion = []struct{ file, old, new string }{
	{"adapters/redis/format.go", "storedFormat = 1\n", "storedFormat = 2\n"},
	{"adapters/redis/lua/lib/base.lua", "-- ", "-- Next.\n-- "},
	{"adapters/postgres/migrate.go", "oldestOf = [...]int{1}", "oldestOf = [...]int{1, 1}"},
	{"adapters/postgres/migrations/0002/tables/jobs.sql", "", "-- What the next version adds.\nALTER TABLE {schema}.jobs ADD COLUMN note text;\n"},
	{"adapters/postgres/migrations/0002/down.sql", "", "ALTER TABLE {schema}.jobs DROP COLUMN note;\n"},
}

// otherVersion returns the path of a program like this one, of another version.
func otherVersion(t *testing.T) string {
	t.Helper()
	if given := os.Getenv(otherVariable); given != "" {
		return given
	}
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for i, change := range nextVersion {
		path := filepath.Join(root, change.file)
		text := change.new
		if change.old != "" {
			now, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(now), change.old) {
				t.Fatalf("%s has no %q; correct nextVersion", change.file, change.old)
			}
			text = strings.Replace(string(now), change.old, change.new, 1)
		}
		replace[path] = filepath.Join(dir, fmt.Sprint(i, filepath.Ext(path)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, program := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "next.test")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(overlay, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(
		t.Context(), "go", "test", "-c", "-overlay", overlay, "-o", program, ".",
	).CombinedOutput(); err != nil {
		t.Fatalf("building the next version: %v\n%s", err, out)
	}
	return program
}

// Nodes of two versions of the code work side by side while one replaces the other, forwards and
// back: no job is lost or runs twice, and the old program starts on the store that the new one has
// used.
func TestTwoVersionsWorkSideBySide(t *testing.T) {
	tier.Long(t, "kills processes at length")
	other := otherVersion(t)
	for name, open := range kit.StoreURLs(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := open(t)
			f := newFlow(t, url)
			nodes, _ := f.startAll("flow", 4)
			before := storedVersion(t, url)
			for _, program := range []string{other, os.Args[0]} {
				for i, old := range nodes {
					nodes[i] = f.startProgram(program, "flow")
					f.awaitReady(nodes[i])
					f.stop(old)
					f.during(500 * time.Millisecond) // both versions have work
				}
			}
			f.checkOnce(nodes)
			if after := storedVersion(t, url); os.Getenv(otherVariable) == "" && after == before {
				t.Errorf("what is stored has the number %s before and after the next version", after)
			}
		})
	}
}

// storedVersion returns the number of the data in a store.
func storedVersion(t *testing.T, url string) string {
	t.Helper()
	if at := strings.Index(url, "?prefix="); at >= 0 {
		return testservers.Redis(t).HGet(t.Context(), url[at+len("?prefix="):]+"queues", "/format").Val()
	}
	_, schema, _ := strings.Cut(url, "schema=")
	var version int
	if err := testservers.Postgres(t).QueryRow(
		t.Context(), "SELECT max(version) FROM "+schema+".migrations",
	).Scan(&version); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(version)
}
