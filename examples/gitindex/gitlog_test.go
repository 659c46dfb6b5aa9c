package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	zeros = "0000000000000000000000000000000000000000"
	hashA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	hashB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	hashC = "cccccccccccccccccccccccccccccccccccccccc"
)

// records joins records as git writes them.
func records(list ...string) string {
	return strings.Join(list, "\x00") + "\x00"
}

// readLog reads a whole log.
func readLog(r io.Reader) ([]change, error) {
	log := newLogReader(r)
	var changes []change
	for {
		c, err := log.next()
		if errors.Is(err, io.EOF) {
			return changes, nil
		}
		if err != nil {
			return changes, err
		}
		changes = append(changes, c)
	}
}

func TestLogReader(t *testing.T) {
	v := func(mode, blob string) Version { return Version{Mode: mode, Blob: blob} }
	for _, test := range []struct {
		name, log string
		want      []change
	}{
		{"an empty log", "", nil},
		{"commits without changes", records("commit "+hashC, "commit "+hashB), nil},
		{
			"each kind of change",
			records("commit "+hashC,
				"\n:000000 100644 "+zeros+" "+hashA+" A", "added",
				":100644 000000 "+hashA+" "+zeros+" D", "deleted",
				":100644 100755 "+hashA+" "+hashA+" M", "mode",
				":100644 120000 "+hashA+" "+hashB+" T", "link",
				":160000 160000 "+hashA+" "+hashB+" M", "submodule"),
			[]change{
				{hashC, "A", "added", Version{}, v("100644", hashA)},
				{hashC, "D", "deleted", v("100644", hashA), Version{}},
				{hashC, "M", "mode", v("100644", hashA), v("100755", hashA)},
				{hashC, "T", "link", v("100644", hashA), v("120000", hashB)},
				{hashC, "M", "submodule", v("160000", hashA), v("160000", hashB)},
			},
		},
		{
			"paths that look like other records",
			records("commit "+hashC,
				"\n:000000 100644 "+zeros+" "+hashA+" A", "commit "+hashB,
				":000000 100644 "+zeros+" "+hashA+" A", ":000000 100644 "+zeros+" "+hashA+" A",
				":000000 100644 "+zeros+" "+hashA+" A", "\n\t\xff"),
			[]change{
				{hashC, "A", "commit " + hashB, Version{}, v("100644", hashA)},
				{hashC, "A", ":000000 100644 " + zeros + " " + hashA + " A", Version{}, v("100644", hashA)},
				{hashC, "A", "\n\t\xff", Version{}, v("100644", hashA)},
			},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := readLog(strings.NewReader(test.log))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLogReaderRefuses(t *testing.T) {
	commit, added := "commit "+hashC, "\n:000000 100644 "+zeros+" "+hashA+" A"
	for name, log := range map[string]string{
		"a log that ends inside a record":     "commit " + hashC,
		"a commit with a short hash":          records("commit abc"),
		"a commit with capitals in its hash":  records("commit " + strings.ToUpper(hashC)),
		"a change in front of every commit":   records(added, "path"),
		"a change without a path":             records(commit, added),
		"a change with an empty path":         records(commit, added, ""),
		"a record of another kind":            records(commit, "hello"),
		"an empty record":                     records(""),
		"a field too few":                     records(commit, ":100644 100644 "+hashA+" M", "path"),
		"a field too many":                    records(commit, ":100644 100644 "+hashA+" "+hashB+" M x", "path"),
		"a combined diff of a merge":          records(commit, "::100644 100644 100644 "+hashA+" "+hashB+" "+hashC+" MM", "path"),
		"an abbreviated blob":                 records(commit, ":000000 100644 0000000 aaaaaaa A", "path"),
		"a blob of another hash than commits": records(commit, ":000000 100644 "+zeros+" "+strings.Repeat("a", 64)+" A", "path"),
		"a mode that is none":                 records(commit, ":000000 10064x "+zeros+" "+hashA+" A", "path"),
		"a mode without a blob":               records(commit, ":100644 100644 "+hashA+" "+zeros+" M", "path"),
		"a blob without a mode":               records(commit, ":100644 000000 "+hashA+" "+hashB+" M", "path"),
		"a rename":                            records(commit, ":100644 100644 "+hashA+" "+hashA+" R100", "from", "to"),
		"an unmerged file":                    records(commit, ":100644 100644 "+hashA+" "+hashB+" U", "path"),
		"an add of what was there":            records(commit, ":100644 100644 "+hashA+" "+hashB+" A", "path"),
		"a delete of nothing":                 records(commit, ":000000 000000 "+zeros+" "+zeros+" D", "path"),
		"a change of nothing":                 records(commit, ":100644 100644 "+hashA+" "+hashA+" M", "path"),
		"a record without end":                strings.Repeat("x", maxRecord+1),
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := readLog(strings.NewReader(log)); !errors.Is(err, errMalformed) {
				t.Errorf("got %+v, error %v", got, err)
			}
		})
	}
}

func TestLogReaderPassesErrorsOn(t *testing.T) {
	broken := errors.New("pipe broke")
	log := io.MultiReader(strings.NewReader(records("commit "+hashC)), failing{broken})
	if _, err := readLog(log); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
}

// failing is a reader that gives an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// FuzzLogReader checks that accepted input is a history that can be written down again and read
// the same, with an id for each path.
func FuzzLogReader(f *testing.F) {
	f.Add([]byte(records("commit "+hashC, "\n:000000 100644 "+zeros+" "+hashA+" A", "path")))
	f.Add([]byte(records("commit "+hashC, "commit "+hashB, "\n:100644 000000 "+hashA+" "+zeros+" D", "commit "+hashA)))
	f.Add([]byte(records("commit "+strings.Repeat("f", 64), ":160000 120000 "+strings.Repeat("a", 64)+" "+strings.Repeat("b", 64)+" T", "\xff\n%")))
	f.Fuzz(func(t *testing.T, log []byte) {
		changes, err := readLog(strings.NewReader(string(log)))
		if err != nil {
			if !errors.Is(err, errMalformed) {
				t.Fatalf("an error that is not errMalformed: %v", err)
			}
			return
		}
		var written []string
		for _, c := range changes {
			written = append(written, "commit "+c.Commit, rawRecord(c), c.Path)
		}
		if written == nil {
			return
		}
		again, err := readLog(strings.NewReader(records(written...)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(changes, again); diff != "" {
			t.Errorf("read again (-first +again):\n%s", diff)
		}
		for _, c := range changes {
			checkID(t, c.Path)
		}
	})
}

// rawRecord returns a change as git writes it.
func rawRecord(c change) string {
	mode := func(v Version) string { return v.Mode + strings.Repeat("0", 6-len(v.Mode)) }
	blob := func(v Version) string { return v.Blob + strings.Repeat("0", len(c.Commit)-len(v.Blob)) }
	return "\n:" + mode(c.Old) + " " + mode(c.New) + " " + blob(c.Old) + " " + blob(c.New) + " " + c.Kind
}

// logOf reads the history of a real repository.
func logOf(ctx context.Context, dir string) (changes []change, err error) {
	repo, err := openRepository(ctx, dir)
	if err != nil {
		return nil, err
	}
	err = repo.log(ctx, func(c change, _ int64) error {
		changes = append(changes, c)
		return nil
	})
	return changes, err
}
