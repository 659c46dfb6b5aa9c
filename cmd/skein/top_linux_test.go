package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
)

// pseudoTerminal opens a terminal with the given number of columns, and its other side, from which
// its output can be read.
func pseudoTerminal(t *testing.T, columns uint16) (terminal, other *os.File) {
	t.Helper()
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	must(t, err)
	number, err := unix.IoctlGetInt(int(other.Fd()), unix.TIOCGPTN)
	must(t, err)
	must(t, unix.IoctlSetPointerInt(int(other.Fd()), unix.TIOCSPTLCK, 0))
	terminal, err = os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|unix.O_NOCTTY, 0)
	must(t, err)
	must(t, unix.IoctlSetWinsize(int(terminal.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	t.Cleanup(func() { _ = other.Close() })
	return terminal, other
}

// shownOn runs a command that runs until it is stopped, on a terminal with the given number of
// columns, and stops it once the output is enough. It returns what the terminal shows then.
func shownOn(
	t *testing.T,
	columns uint16,
	store ports.ShardStore,
	enough func(text string) bool,
	args ...string,
) string {
	t.Helper()
	terminal, other := pseudoTerminal(t, columns)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()

	written := make(chan string)
	go func() {
		var b strings.Builder
		for part := make([]byte, 4096); ; {
			n, err := other.Read(part)
			b.Write(part[:n])
			if enough(b.String()) {
				stop()
			}
			if err != nil { // nobody has the terminal open
				written <- b.String()
				return
			}
		}
	}()
	p := process{
		stdin:  strings.NewReader(""),
		stdout: terminal,
		stderr: io.Discard,
		env:    func(string) string { return "" },
		connect: func(context.Context, string) (*backends.Backend, error) {
			return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
		},
	}
	if code := p.run(ctx, append(args, "--url", "memory://")); code != 0 {
		t.Errorf("exit code %d", code)
	}

	must(t, terminal.Close())
	_, shown, _ := strings.Cut(<-written, "\x1b[2J")
	return shown
}

// On a terminal the tables of top keep to its columns; an emoji takes two. Each line is the
// terminal's own.
func TestTopKeepsToTheColumnsOfATerminal(t *testing.T) {
	const columns = 50
	store := memory.New(memory.Options{})
	long := strings.Repeat("q", 2*columns)
	_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: long, Shards: 1})
	must(t, err)
	_, err = store.Announce(t.Context(), ports.AnnounceRequest{
		Node: ports.Node{
			Owner:  "o",
			Name:   strings.Repeat("\u2705", columns),
			Queues: []string{long},
		},
		TTL: time.Hour,
	})
	must(t, err)

	// The last line is of the server.
	shown := shownOn(t, columns, store, func(text string) bool { return strings.Contains(text, "\u2705") },
		"top", "--interval", "1h")

	cut := 0
	for line := range strings.SplitSeq(shown, "\r\n") {
		took := len([]rune(line)) + strings.Count(line, "\u2705")
		if !strings.Contains(line, "qqqq") && !strings.Contains(line, "\u2705") {
			continue
		}
		if cut++; took > columns || took < columns-1 || !strings.HasSuffix(line, string(cutSign)) {
			t.Errorf("a line takes %d of %d columns: %q", took, columns, line)
		}
	}

	if cut != 2 {
		t.Errorf("%d lines are of the queue and the server:\n%s", cut, shown)
	}
}

// A watch of statistics leaves columns out that a terminal has no room for, and keeps the rates;
// -o wide has all, and no other line is wider than the terminal. A name that is too long for it is
// cut.
func TestAWatchKeepsToTheColumnsOfATerminal(t *testing.T) {
	const all = 15
	for _, tt := range []struct {
		columns      uint16
		queue, o     string
		most, heads  int
		has, without string
	}{
		{80, "orders", "table", 80, 10, "LAG", "PROCESSED"},
		{80, strings.Repeat("orders-", 18), "table", 80, 0, string(cutSign), "MORGUE"},
		{200, "orders", "table", 200, all, "PROCESSED", "QUARANTINED"},
		{80, "orders", "wide", 1000, all + 14, "QUARANTINED", string(cutSign)},
	} {
		store := memory.New(memory.Options{})
		_, err := store.Declare(t.Context(), ports.DeclareRequest{Queue: tt.queue, Shards: 5})
		must(t, err)

		// The lines are the age, the heads and the queue.
		shown := shownOn(t, tt.columns, store, func(text string) bool { return strings.Count(text, "\n") >= 3 },
			"stats", "--watch", "--interval", "1h", "-o", tt.o)

		lines := strings.Split(strings.TrimSpace(shown), "\r\n")
		if len(lines) != 3 {
			t.Fatalf("%d lines, want 3: %q", len(lines), lines)
		}
		for _, line := range lines {
			if n := columnsOfText(line); n > tt.most {
				t.Errorf("-o %s on %d columns: a line takes %d: %q", tt.o, tt.columns, n, line)
			}
		}
		if n := len(strings.Fields(lines[1])); tt.heads > 0 &&
			(n != tt.heads || !strings.HasSuffix(lines[1], "FAILED/S")) {
			t.Errorf("-o %s on %d columns: %d heads, want %d and the rates: %q",
				tt.o, tt.columns, n, tt.heads, lines[1])
		}
		if !strings.Contains(shown, tt.has) || strings.Contains(shown, tt.without) {
			t.Errorf("-o %s on %d columns: want %s, and not %s: %q", tt.o, tt.columns, tt.has, tt.without, shown)
		}
	}
}

// The program shows its page on a terminal, reacts to keys, and leaves the terminal as it was.
func TestTopOnATerminal(t *testing.T) {
	terminal, other := pseudoTerminal(t, 80)
	program, err := os.Executable()
	must(t, err)
	// A text that never comes ends the test, not the run.
	ctx, stop := context.WithTimeout(t.Context(), testservers.Patience)
	defer stop()

	c := exec.CommandContext(ctx, program, "top", "--url", "memory://")
	c.Env = append(os.Environ(), mainVariable+"=1", "TERM=xterm-256color")
	c.Stdin, c.Stdout, c.Stderr = terminal, terminal, terminal
	must(t, c.Start())
	must(t, terminal.Close())

	var shown strings.Builder
	await := func(text string) {
		t.Helper()
		for part := make([]byte, 4096); !strings.Contains(shown.String(), text); {
			n, err := other.Read(part)
			shown.Write(part[:n])
			if err != nil {
				t.Fatalf("%q is not shown: %v: %q", text, err, shown.String())
			}
		}
	}

	await("nothing is wrong")
	await("q quit")
	_, err = other.WriteString("?")
	must(t, err)
	await("Actions ask first")
	_, err = other.WriteString("xq")
	must(t, err)
	await("\x1b[?1049l") // the screen of before

	if err := c.Wait(); err != nil {
		t.Errorf("it ended with %v: %q", err, shown.String())
	}
}
