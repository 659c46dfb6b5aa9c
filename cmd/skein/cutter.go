package main

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"
)

// cutter writes to a terminal with the given number of columns. It truncates long lines, so that
// the terminal does not wrap them.
type cutter struct {
	to      io.Writer
	columns int
	// at is the number of used columns of the present line.
	at int
}

// cutSign ends a truncated line.
const cutSign = '…'

// Write implements io.Writer. p must end between two characters, as the writes of screen do.
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
			n.at = n.columns + 1 // write nothing more of the line, not even a mark over the sign
		}
	}

	if _, err := io.WriteString(n.to, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// ends reports whether nothing more of the line follows, apart from marks over the previous
// character.
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

// narrowed truncates the lines of tables to the width of the terminal, until restore is called.
func (a *app) narrowed() (restore func()) {
	was := a.stdout
	if f, ok := a.screen.(*os.File); ok && terminal(f) {
		if n := columnsOf(f); n > 0 {
			a.stdout = &screen{to: &cutter{to: f, columns: n}}
		}
	}
	return func() { a.stdout = was }
}
