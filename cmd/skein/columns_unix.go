//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// columnsOf returns how many columns a terminal has, 0 if that is unknown.
func columnsOf(terminal *os.File) int {
	size, err := unix.IoctlGetWinsize(int(terminal.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0
	}
	return int(size.Col)
}
