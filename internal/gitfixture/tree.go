package gitfixture

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// The modes of git's tree entries.
const (
	regular    = "100644"
	executable = "100755"
	symlink    = "120000"
	submodule  = "160000"
)

// file is the content of a path: a mode, and a blob's mark or a submodule's commit.
type file struct {
	mode, ref string
}

// tree has the files of a commit. No path in it is a directory of another path.
type tree struct {
	files map[string]file
	// paths are the keys of files, in an order that depends on the history only.
	paths []string
	// at has the index of each path in paths.
	at map[string]int
	// below counts the files in each directory.
	below map[string]int
}

func newTree() *tree {
	return &tree{files: map[string]file{}, at: map[string]int{}, below: map[string]int{}}
}

func (t *tree) clone() *tree {
	return &tree{
		files: maps.Clone(t.files),
		paths: slices.Clone(t.paths),
		at:    maps.Clone(t.at),
		below: maps.Clone(t.below),
	}
}

// free reports whether a path can be added: it is neither a file nor a directory, and none of its
// directories is a file.
func (t *tree) free(path string) bool {
	if _, ok := t.files[path]; ok || t.below[path] > 0 {
		return false
	}
	for _, dir := range directories(path) {
		if _, ok := t.files[dir]; ok {
			return false
		}
	}
	return true
}

// set writes a path that exists or is free.
func (t *tree) set(path string, f file) {
	if _, ok := t.files[path]; !ok {
		t.at[path] = len(t.paths)
		t.paths = append(t.paths, path)
		for _, dir := range directories(path) {
			t.below[dir]++
		}
	}
	t.files[path] = f
}

// remove deletes a path, if it is there.
func (t *tree) remove(path string) {
	at, ok := t.at[path]
	if !ok {
		return
	}
	last := len(t.paths) - 1
	t.paths[at] = t.paths[last]
	t.at[t.paths[at]] = at
	t.paths = t.paths[:last]
	delete(t.at, path)
	delete(t.files, path)
	for _, dir := range directories(path) {
		t.below[dir]--
	}
}

// pick returns a random path. The tree must not be empty.
func (t *tree) pick(r *rand.Rand) string {
	return t.paths[r.IntN(len(t.paths))]
}

// directories returns all directories of a path.
func directories(path string) []string {
	var dirs []string
	for i := range len(path) {
		if path[i] == '/' {
			dirs = append(dirs, path[:i])
		}
	}
	return dirs
}

// quote returns a path in the quotes of fast-import. The path may have any bytes.
func quote(path string) string {
	var b strings.Builder
	b.WriteByte('"')

	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c > '~':
			b.Write([]byte{'\\', '0' + c>>6, '0' + c>>3&7, '0' + c&7})
		default:
			b.WriteByte(c)
		}
	}

	b.WriteByte('"')
	return b.String()
}
