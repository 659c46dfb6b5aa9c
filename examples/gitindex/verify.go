package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// comparison is how the index and HEAD's files differ.
type comparison struct {
	// paths is how many files HEAD has.
	paths       int
	differences examples
}

// compare compares the index with git ls-tree -r HEAD. It empties files.
func compare(ctx context.Context, r repository, files map[string]Version) (*comparison, error) {
	c := &comparison{}
	err := r.tree(ctx, func(path string, want Version) {
		c.paths++
		if got := files[path]; got != want {
			c.differences.add(fmt.Sprintf("%q: HEAD has %v, the index %v", path, want, got))
		}
		delete(files, path)
	})
	if err != nil {
		return nil, fmt.Errorf("list the files of HEAD: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		c.differences.add(fmt.Sprintf("%q: HEAD has %v, the index %v", path, Version{}, files[path]))
	}
	return c, nil
}

// readTree reads the output of git ls-tree -r -z: for each file a mode, a type, a
// hash, a tab, the path and NUL.
func readTree(out io.Reader, each func(path string, v Version)) error {
	records := bufio.NewScanner(out)
	records.Buffer(nil, maxRecord)
	records.Split(splitRecords)
	for records.Scan() {
		about, path, ok := strings.Cut(records.Text(), "\t")
		fields := strings.Split(about, " ")
		if !ok || path == "" || len(fields) != 3 || !isMode(fields[0]) || !isHash(fields[2]) {
			return fmt.Errorf("malformed git ls-tree: %.200q", records.Text())
		}
		each(path, Version{Mode: fields[0], Blob: fields[2]})
	}
	return records.Err()
}
