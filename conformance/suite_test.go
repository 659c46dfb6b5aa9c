package conformance

import (
	"bytes"
	"os"
	"testing"
	"time"

	"github.com/skeinq/skein/ports"
)

func memoryStore(_ testing.TB, clock func() time.Time) func() ports.ShardStore {
	all := withTransactions(clock)
	return func() ports.ShardStore { return all.open() }
}

func TestMemory(t *testing.T) { Run(t, memoryStore) }

// The suite's worked cases are copies of those of core.
func TestVectorsAreThoseOfCore(t *testing.T) {
	for _, name := range []string{"merge.json", "mergerules.json", "failure.json", "recovery.json", "tags.json"} {
		ours, err := vectors.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile("../core/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("testdata/%s differs from core's; copy it", name)
		}
	}
}

// Each case has a name of its own and a rule, since failures are read by these.
func TestCasesAreNamed(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range groups(probe(t, memoryStore)) {
		for _, c := range g.Cases {
			name := g.Name + "/" + c.Name
			if seen[name] || c.Name == "" || c.Rule == "" {
				t.Errorf("case %q has no name, no rule, or the name of another case", name)
			}
			seen[name] = true
		}
	}
}
