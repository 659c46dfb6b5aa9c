package merge

import (
	"bytes"
	"os"
	"testing"
)

// The suite's worked cases are copies of those of core.
func TestVectorsAreThoseOfCore(t *testing.T) {
	for _, name := range []string{"merge.json", "mergerules.json", "failure.json", "recovery.json", "tags.json", "first.json", "imports.json", "moved.json", "awaits.json"} {
		ours, err := vectors.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := os.ReadFile("../../../../core/testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("testdata/%s differs from core's; copy it", name)
		}
	}
}
