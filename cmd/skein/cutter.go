package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// cutter is a terminal with the given number of columns. It cuts lines instead of continuing them
// on the next one, so that a screen keeps its shape.
type cutter struct {
	to      io.Writer
	columns int
	// at is how many columns of the present line are used.
	at int
}

// cutSign ends a line that was cut.
const cutSign = '…'

// Write implements io.Writer. It takes whole characters, as screen gives them.
func (n *cutter) Write(p []byte) (int, error) {
	var b strings.Builder
	for rest := p; len(rest) > 0; {
		r, size := utf8.DecodeRune(rest)
		rest = rest[size:]
		if r == '\n' {
			n.at = 0
			b.WriteRune(r)
			continue
		}
		was := n.at
		n.at += columnsOfRune(r)
		switch {
		case n.at < n.columns, n.at == n.columns && ends(rest):
			b.WriteRune(r)
		case was < n.columns:
			b.WriteRune(cutSign)
			n.at = n.columns + 1 // nothing of the line follows, no mark over the sign either
		}
	}
	if _, err := io.WriteString(n.to, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ends reports whether no more columns of a line follow, but for marks over the character before.
func ends(rest []byte) bool {
	for len(rest) > 0 {
		r, size := utf8.DecodeRune(rest)
		if r == '\n' || columnsOfRune(r) > 0 {
			return r == '\n'
		}
		rest = rest[size:]
	}
	return true
}

// narrowed cuts tables for a terminal to its width, until the returned function is called.
func (a *app) narrowed() (restore func()) {
	was := a.stdout
	if f, ok := a.screen.(*os.File); ok && terminal(f) {
		if n := columnsOf(f); n > 0 {
			a.stdout = &screen{to: &cutter{to: f, columns: n}}
		}
	}
	return func() { a.stdout = was }
}
