package skeintest

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// tableLimit bounds the work of a diff; a larger change is shown as a whole.
	tableLimit = 1 << 20
	// around is the number of equal lines that a diff shows before and after a change.
	around = 2
)

// edit is a line that is in both (' '), only in want ('-') or only in got ('+').
type edit struct {
	sign rune
	line string
}

func (e edit) changes() bool { return e.sign != ' ' }

// diff returns the lines that turn want into got, each with its sign. The result is empty if want
// and got are equal.
func diff(want, got []string) string {
	edits := compareLines(want, got)
	if !slices.ContainsFunc(edits, edit.changes) {
		return ""
	}

	var b strings.Builder
	skipping := false

	for i, e := range edits {
		near := edits[max(0, i-around):min(len(edits), i+around+1)]
		switch {
		case slices.ContainsFunc(near, edit.changes):
			skipping = false
			fmt.Fprintf(&b, "%c %s\n", e.sign, e.line)
		case !skipping:
			skipping = true
			b.WriteString("  ...\n")
		}
	}

	return b.String()
}

// compareLines returns the edits that turn want into got, by a longest common subsequence.
func compareLines(want, got []string) []edit {
	var head, tail []edit
	for len(want) > 0 && len(got) > 0 && want[0] == got[0] {
		head = append(head, edit{' ', want[0]})
		want, got = want[1:], got[1:]
	}

	for len(want) > 0 && len(got) > 0 && want[len(want)-1] == got[len(got)-1] {
		tail = append(tail, edit{' ', want[len(want)-1]})
		want, got = want[:len(want)-1], got[:len(got)-1]
	}

	edits := append(head, compareMiddle(want, got)...)
	for i := len(tail) - 1; i >= 0; i-- {
		edits = append(edits, tail[i])
	}

	return edits
}

func compareMiddle(want, got []string) []edit {
	var edits []edit
	take := func(sign rune, from *[]string) {
		edits = append(edits, edit{sign, (*from)[0]})
		*from = (*from)[1:]
	}

	if (len(want)+1)*(len(got)+1) <= tableLimit {
		common := commonLengths(want, got)
		for len(want) > 0 && len(got) > 0 {
			w, g := len(want), len(got)
			switch {
			case want[0] == got[0]:
				take(' ', &want)
				got = got[1:]
			case common(w-1, g) >= common(w, g-1):
				take('-', &want)
			default:
				take('+', &got)
			}
		}
	}

	for len(want) > 0 {
		take('-', &want)
	}
	for len(got) > 0 {
		take('+', &got)
	}

	return edits
}

// commonLengths returns the length of the longest common subsequence of the last w
// lines of want and the last g of got.
func commonLengths(want, got []string) func(w, g int) int {
	width := len(got) + 1
	table := make([]int, (len(want)+1)*width)
	for w := 1; w <= len(want); w++ {
		for g := 1; g <= len(got); g++ {
			at := w*width + g
			if want[len(want)-w] == got[len(got)-g] {
				table[at] = table[at-width-1] + 1
			} else {
				table[at] = max(table[at-width], table[at-1])
			}
		}
	}
	return func(w, g int) int { return table[w*width+g] }
}
