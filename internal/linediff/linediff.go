// Package linediff compares two texts line by line, for people. Its functions are pure.
package linediff

import (
	"slices"
	"strings"
)

// Kind is what a line is in a comparison.
type Kind uint8

// The kinds of lines.
const (
	// Kept is a line of both texts.
	Kept Kind = iota
	// Removed is a line of the first text only, and Added one of the second only.
	Removed
	Added
	// Skipped stands for lines of both texts that are left out.
	Skipped
)

// Context is the number of lines that people are shown before and behind a change.
const Context = 3

// Sign returns the two characters before a line of the kind.
func (k Kind) Sign() string {
	switch k {
	case Removed:
		return "- "
	case Added:
		return "+ "
	}
	return "  "
}

// Line is a line of a comparison, without its end.
type Line struct {
	Kind Kind
	Text string
	// Count is the number of lines that are left out, for Skipped.
	Count int
}

// maxCells bounds the work and the memory of a comparison: the product of the numbers of lines of
// both texts, without those that both have at the beginning and at the end.
const maxCells = 1 << 20

// Of returns the lines of both texts in order, with as many as possible that both have. Where the
// texts differ in too many lines, all lines of the first are removed and all of the second added.
func Of(before, after string) []Line {
	a, b := strings.Split(before, "\n"), strings.Split(after, "\n")

	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}

	lines := appendLines(nil, Kept, a[:head])
	lines = appendMiddle(lines, a[head:len(a)-tail], b[head:len(b)-tail])
	return appendLines(lines, Kept, a[len(a)-tail:])
}

func appendLines(lines []Line, kind Kind, texts []string) []Line {
	for _, text := range texts {
		lines = append(lines, Line{Kind: kind, Text: text})
	}
	return lines
}

// appendMiddle appends the comparison of lines of which the first two and the last two differ.
func appendMiddle(lines []Line, a, b []string) []Line {
	if len(a)*len(b) > maxCells {
		return appendLines(appendLines(lines, Removed, a), Added, b)
	}

	common := commonLengths(a, b)
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			lines = append(lines, Line{Kind: Kept, Text: a[i]})
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			lines = append(lines, Line{Kind: Removed, Text: a[i]})
			i++
		default:
			lines = append(lines, Line{Kind: Added, Text: b[j]})
			j++
		}
	}
	return appendLines(appendLines(lines, Removed, a[i:]), Added, b[j:])
}

// commonLengths returns the length of the longest common subsequence of a[i:] and b[j:], for each i
// and j.
func commonLengths(a, b []string) [][]int32 {
	lengths := make([][]int32, len(a)+1)
	for i := range lengths {
		lengths[i] = make([]int32, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				lengths[i][j] = lengths[i+1][j+1] + 1
			} else {
				lengths[i][j] = max(lengths[i+1][j], lengths[i][j+1])
			}
		}
	}
	return lengths
}

// Near returns the lines that differ, with at most n kept lines before and behind them. A line
// Skipped stands for those that are left out, if there are at least two.
func Near(lines []Line, n int) (near []Line) {
	shown := make([]bool, len(lines))
	for at := range lines {
		if lines[at].Kind != Kept {
			for k := max(0, at-n); k <= min(len(lines)-1, at+n); k++ {
				shown[k] = true
			}
		}
	}

	for at := 0; at < len(lines); {
		if shown[at] {
			near = append(near, lines[at])
			at++
			continue
		}
		end := slices.Index(shown[at:], true)
		if end < 0 {
			end = len(lines) - at
		}
		if end == 1 {
			near = append(near, lines[at])
		} else {
			near = append(near, Line{Kind: Skipped, Count: end})
		}
		at += end
	}
	return near
}

// Changed reports whether a comparison has a line that differs.
func Changed(lines []Line) bool {
	return slices.ContainsFunc(lines, func(l Line) bool { return l.Kind == Removed || l.Kind == Added })
}
