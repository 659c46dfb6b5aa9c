package main

import (
	"context"
	"io"
	"strings"
	"testing"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/internal/backends"
)

// A new queue's shards are asked for on a terminal. Elsewhere the push is refused as before.
func TestAPushOnATerminalAsksForTheShards(t *testing.T) {
	for _, tt := range []struct {
		typed, says string
		code        int
	}{
		{"3\n", "Type the number, 1 to 16384, to declare the queue: ", 0},
		{"0\n", "is no number of shards", 7},
		{"many\n", "is no number of shards", 7},
		{"\x04", "is no number of shards", 7}, // the end of the input
	} {
		store := memory.New(memory.Options{})
		terminal, other := pseudoTerminal(t, 200)
		_, err := io.WriteString(other, tt.typed)
		must(t, err)

		p := process{
			stdin:  terminal,
			stdout: io.Discard,
			stderr: terminal,
			env:    func(string) string { return "memory://" },
			connect: func(context.Context, string) (*backends.Backend, error) {
				return &backends.Backend{Store: store, Close: func() error { return nil }}, nil
			},
		}
		code := p.run(t.Context(), []string{"job", "push", "orders", "42", "--payload", "x"})
		must(t, terminal.Close())
		said, _ := io.ReadAll(other) // it ends with an error once the terminal is closed
		if code != tt.code || !strings.Contains(string(said), tt.says) {
			t.Errorf("typed %q: exit code %d, want %d: %s", tt.typed, code, tt.code, said)
		}

		queues, err := store.Queues(t.Context())
		if must(t, err); len(queues) != map[bool]int{true: 1}[code == 0] || code == 0 && queues[0].Shards != 3 {
			t.Errorf("typed %q: %+v", tt.typed, queues)
		}
	}
}
