package gitfixture

import (
	"fmt"
	"io"
)

// change is a commit's changes to the files of its branch.
type change struct {
	files *tree
	// before holds each touched path as it was; the zero file means that it did not exist.
	before map[string]file
	// paths are the touched paths, in the order of their first change.
	paths []string
}

func newChange(t *tree) *change {
	return &change{files: t, before: map[string]file{}}
}

func (c *change) put(path string, f file) {
	c.remember(path)
	c.files.set(path, f)
}

func (c *change) drop(path string) {
	c.remember(path)
	c.files.remove(path)
}

func (c *change) remember(path string) {
	if _, ok := c.before[path]; !ok {
		c.before[path] = c.files.files[path]
		c.paths = append(c.paths, path)
	}
}

// adopt gives paths the content that they have in another tree. It skips paths that can't be added
// here.
func (c *change) adopt(from *tree, paths []string) {
	for _, path := range paths {
		f, there := from.files[path]
		_, here := c.files.files[path]
		switch {
		case !there:
			c.drop(path)
		case here || c.files.free(path):
			c.put(path, f)
		}
	}
}

// write writes the change for fast-import, the deletes first, so that a former file can become a
// directory.
func (c *change) write(w io.Writer) {
	for _, path := range c.paths {
		if _, ok := c.files.files[path]; !ok && c.before[path] != (file{}) {
			fmt.Fprintf(w, "D %s\n", quote(path))
		}
	}
	for _, path := range c.paths {
		if f, ok := c.files.files[path]; ok && c.before[path] != f {
			fmt.Fprintf(w, "M %s %s %s\n", f.mode, f.ref, quote(path))
		}
	}
}

// touch makes one random change. It changes one file, or moves one.
func (h *history) touch(c *change) {
	n := h.r.IntN(100)
	if len(c.files.paths) < 20 || n < 25 {
		h.add(c)
		return
	}

	path := c.files.pick(h.r)
	f := c.files.files[path]
	switch {
	case n < 60:
		h.put(c, path, file{content(f.mode), h.text()})
	case n < 68:
		h.put(c, path, h.previous[path])
	case n < 74:
		h.put(c, path, file{toggled(f.mode), f.ref})
	case n < 78:
		h.retype(c, path)
	case n < 84:
		h.move(c, path, newPath(h.r, h.number()))
	case n < 86:
		h.move(c, path, path+"/inside")
	case n < 92:
		h.readd(c)
	default:
		h.drop(c, path)
	}
}

// put sets the content of a path. It remembers the previous content, to which the file may return.
func (h *history) put(c *change, path string, f file) {
	if f == (file{}) {
		return
	}
	if old, ok := c.files.files[path]; ok {
		h.previous[path] = old
	}
	c.put(path, f)
}

func (h *history) drop(c *change, path string) {
	h.previous[path] = c.files.files[path]
	h.deleted = append(h.deleted, path)
	c.drop(path)
}

func (h *history) add(c *change) {
	path := newPath(h.r, h.number())
	if c.files.free(path) {
		h.put(c, path, h.newFile())
	}
}

func (h *history) newFile() file {
	switch n := h.r.IntN(40); {
	case n == 0:
		return file{submodule, h.submodule()}
	case n < 3:
		return file{symlink, h.text()}
	case n < 6:
		return file{executable, h.text()}
	}
	return file{regular, h.text()}
}

// retype gives a path a random type: regular file, symbolic link or submodule.
func (h *history) retype(c *change, path string) {
	modes := []string{regular, symlink, submodule}
	f := file{mode: modes[h.r.IntN(len(modes))]}
	if f.mode == submodule {
		f.ref = h.submodule()
	} else {
		f.ref = h.text()
	}
	h.put(c, path, f)
}

// move renames a file. The new path can lie below the old one, which then becomes a directory.
func (h *history) move(c *change, from, to string) {
	f := c.files.files[from]
	h.drop(c, from)
	if c.files.free(to) {
		h.put(c, to, f)
	}
}

// readd adds a path again that was deleted earlier.
func (h *history) readd(c *change) {
	if len(h.deleted) == 0 {
		return
	}
	path := h.deleted[h.r.IntN(len(h.deleted))]
	if c.files.free(path) {
		h.put(c, path, h.newFile())
	}
}

func (h *history) number() int {
	h.named++
	return h.named
}

// text writes a new blob with a random text and returns its mark. Sometimes two blobs are equal.
func (h *history) text() string {
	return h.blob(fmt.Sprintf("content %d\n", h.r.IntN(1<<20)))
}

// content returns the mode of a file that gets a new text.
func content(mode string) string {
	if mode == submodule {
		return regular
	}
	return mode
}

// toggled returns the mode with the executable bit of a regular file changed. It returns other
// modes unchanged.
func toggled(mode string) string {
	switch mode {
	case regular:
		return executable
	case executable:
		return regular
	}
	return mode
}
