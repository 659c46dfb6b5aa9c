package gitfixture

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// oddNames are formats of base names that break careless programs. Each takes a number.
var oddNames = []string{
	"-leading-dash-%d", "--flag=%d", " space %d ", "tab\there-%d", "new\nline-%d",
	"quo\"te-%d", "back\\slash-%d", "percent%%41-%d", "latin1-\xe9\xff-%d",
	"cut-\xf0\x9f-%d", "ünïcode-日本-%d", "combining-e\u0301-%d", "control-\x01\x7f-%d",
	"c1-\u0085-%d", "replacement-\ufffd-%d", ":100644-%d", "commit %d", "*glob?[%d]", "~tilde-%d",
}

// oddShare is how rare odd names are: one new name in oddShare is odd.
const oddShare = 8

// longShare is how rare long names are: one odd name in longShare is longer than a job's id may be.
const longShare = 20

// newPath returns a path that was never used. The names of its directories are not names of files,
// so the path is free, unless a file became a directory on purpose.
func newPath(r *rand.Rand, number int) string {
	var b strings.Builder
	for range r.IntN(4) {
		fmt.Fprintf(&b, "dir-%d/", r.IntN(6))
	}

	switch {
	case r.IntN(oddShare) > 0:
		fmt.Fprintf(&b, "file-%d.txt", number)
	case r.IntN(longShare) > 0:
		fmt.Fprintf(&b, oddNames[r.IntN(len(oddNames))], number)
	default:
		fmt.Fprintf(&b, "%s/%s/%s-%d", strings.Repeat("long", 50), strings.Repeat("\xfe", 200),
			strings.Repeat("é", 100), number)
	}

	return b.String()
}
