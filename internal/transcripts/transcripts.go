// Package transcripts replays the transcripts of state machines, for their tests. In a transcript a
// line that is not indented is an event, and the indented lines below are what follows from it. Lines
// that begin with # are comments.
package transcripts

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Compare compares each transcript of a folder with what replay makes of it, in a test of its own.
// If update is true, Compare writes the result to the file instead.
func Compare(t *testing.T, folder string, update bool, replay func(t *testing.T, transcript string) string) {
	files, err := filepath.Glob(filepath.Join(folder, "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}

	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := replay(t, string(want))

			if update {
				err = os.WriteFile(file, []byte(got), 0o644)
			} else if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (- want, + got; -update rewrites it):\n%s", file, diff)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// Replay calls event with the words of each event of a transcript. It writes the events and the
// comments to out, where event adds what follows.
func Replay(out *strings.Builder, transcript string, event func(name string, args []string)) {
	for line := range strings.Lines(transcript) {
		if strings.HasPrefix(line, "  ") {
			continue
		}
		out.WriteString(line)
		if words := strings.Fields(line); len(words) > 0 && !strings.HasPrefix(line, "#") {
			event(words[0], words[1:])
		}
	}
}
