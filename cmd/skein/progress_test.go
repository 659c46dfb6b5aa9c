package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/skeinq/skein/inspect"
)

// The total of an import is what it has read so far, so its progress is the share of the file.
func TestProgressOfAnImportIsTheShareOfItsFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "dead.jsonl")
	must(t, os.WriteFile(name, []byte(strings.Repeat("x", 400)), 0o600))
	file, err := os.Open(name)
	must(t, err)
	defer func() { must(t, file.Close()) }()

	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			in   io.Reader
			want string
		}{
			{file, "import: 1,500 read, 25 % of the file, 1,200 imported, 150/s"},
			{strings.NewReader(strings.Repeat("x", 400)), "import: 1,500 read, 1,200 imported, 150/s"},
		} {
			p, in := newProgress(nil, "import", "imported"), inputOf(tt.in)
			p.of = in.share
			_, err := io.ReadFull(in, make([]byte, 100))
			must(t, err)

			time.Sleep(10 * time.Second)
			if got := p.line(inspect.Progress{Done: 1500, Total: 1500, Handled: 1200}); got != tt.want {
				t.Errorf("it says %q, want %q", got, tt.want)
			}
		}
	})
}
