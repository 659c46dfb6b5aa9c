package gitfixture

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"strings"
)

// changesPerCommit is the largest number of changes in a commit without a merge. The mean is about
// half of it.
const changesPerCommit = 18

// history writes a stream for git fast-import. Its writer keeps the first error for Flush, so no
// write is checked.
type history struct {
	w       *bufio.Writer
	r       *rand.Rand
	options Options
	// mark is the last used mark. Marks are fast-import's names for blobs and commits.
	mark int
	// named is the number of new paths so far, and dated the number of commits.
	named, dated int
	// deleted are deleted paths, which may be added again.
	deleted []string
	// previous is the content of each path before its last change.
	previous map[string]file
}

func newHistory(w *bufio.Writer, o Options) *history {
	if o.Commits <= 0 {
		o.Commits = DefaultCommits
	}
	return &history{w: w, r: rand.New(rand.NewPCG(o.Seed, 1)), options: o, previous: map[string]file{}}
}

// branch is a line of commits and the files at its tip.
type branch struct {
	ref string
	// tip is the mark of its last commit, or 0 if it has none.
	tip   int
	files *tree
}

// write writes the whole history: main, and the side branches that main merges.
func (h *history) write() {
	main := &branch{ref: "refs/heads/main", files: newTree()}
	for written := 0; written < h.options.Commits; written++ {
		switch n := h.r.IntN(40); {
		case n == 0:
			h.commit(main, newChange(main.files))
		case n < 4 && main.tip != 0:
			written += h.mergeSides(main, h.options.Commits-written-1)
		default:
			h.edit(main)
		}
	}
	fmt.Fprintln(h.w, "done")
}

// edit commits changes of some files.
func (h *history) edit(b *branch) *change {
	c := newChange(b.files)
	for range 1 + h.r.IntN(changesPerCommit) {
		h.touch(c)
	}
	h.commit(b, c)
	return c
}

// mergeSides forks one or two side branches, continues main for at most the given number of
// commits, and merges. It returns how many commits main had before the merge.
func (h *history) mergeSides(main *branch, atMost int) int {
	sides := []*branch{h.fork(main)}
	if h.r.IntN(8) == 0 {
		sides = append(sides, h.fork(main))
	}

	changes := make([]*change, 0, len(sides))
	for _, side := range sides {
		changes = append(changes, h.edit(side))
	}

	between := min(h.r.IntN(4), atMost)
	for range between {
		h.edit(main)
	}

	h.merge(main, sides, changes)
	return between
}

// fork starts a side branch at main's tip. One side branch in ten begins an unrelated history
// instead.
func (h *history) fork(main *branch) *branch {
	side := &branch{ref: fmt.Sprintf("refs/heads/side-%d", h.dated), tip: main.tip, files: main.files.clone()}
	if h.r.IntN(10) == 0 {
		side.tip, side.files = 0, newTree()
	}
	return side
}

// merge commits a merge with the changes of the sides, and sometimes with changes of its own. Some
// merges take no change.
func (h *history) merge(main *branch, sides []*branch, changes []*change) {
	c := newChange(main.files)
	parents := make([]int, 0, len(sides))
	ours := h.r.IntN(8) == 0
	for i, side := range sides {
		parents = append(parents, side.tip)
		if !ours {
			c.adopt(side.files, changes[i].paths)
		}
	}

	if !ours && h.r.IntN(2) == 0 {
		for range 1 + h.r.IntN(3) {
			h.touch(c)
		}
	}

	h.commit(main, c, parents...)
}

// commit writes a commit on a branch, which may have none yet.
func (h *history) commit(b *branch, c *change, merged ...int) {
	h.mark++
	h.dated++

	if b.tip == 0 {
		fmt.Fprintf(h.w, "reset %s\n", b.ref)
	}
	fmt.Fprintf(h.w, "commit %s\nmark :%d\ncommitter C <c@example.com> %d +0000\n",
		b.ref, h.mark, 1_700_000_000+h.dated)

	h.data(fmt.Sprintf("commit %d\n", h.dated))
	if b.tip != 0 {
		fmt.Fprintf(h.w, "from :%d\n", b.tip)
	}
	for _, m := range merged {
		fmt.Fprintf(h.w, "merge :%d\n", m)
	}

	c.write(h.w)
	fmt.Fprintln(h.w)
	b.tip = h.mark
}

// blob writes a blob and returns its mark.
func (h *history) blob(text string) string {
	h.mark++
	fmt.Fprintf(h.w, "blob\nmark :%d\n", h.mark)
	h.data(text)
	return fmt.Sprintf(":%d", h.mark)
}

func (h *history) data(text string) {
	fmt.Fprintf(h.w, "data %d\n%s\n", len(text), text)
}

// submodule returns the name of a commit of another repository.
func (h *history) submodule() string {
	digits := 40
	if h.options.SHA256 {
		digits = 64
	}
	return strings.Repeat(fmt.Sprintf("%08x", h.r.Uint32()|1), digits/8)
}
