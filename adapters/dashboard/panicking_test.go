package dashboard

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/ports"
)

// panicking is a store that panics when servers or checks are requested.
type panicking struct {
	*faulty
	nodes, checks bool
}

func (s *panicking) Nodes(ctx context.Context) (ports.NodesReply, error) {
	if s.nodes {
		panic("no servers")
	}
	return s.faulty.Nodes(ctx)
}

func (s *panicking) Check(ctx context.Context) ([]ports.Check, error) {
	if s.checks {
		panic("no checks")
	}
	return s.faulty.Check(ctx)
}

// Servers and checks are read beside the rest, in goroutines where no HTTP server catches a panic.
// If one panics, its value is unknown, the panic is logged, and the rest is shown.
func TestAStoreThatPanicsIsUnknown(t *testing.T) {
	for _, tt := range []struct {
		name          string
		nodes, checks bool
		page, shown   string
	}{
		{"servers", true, false, "/nodes", "The list of servers can't be read now"},
		{"checks", false, true, "/store", "no checks"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHouse(t, Options{})
			var log bytes.Buffer
			store := &panicking{h.store, tt.nodes, tt.checks}
			board, err := New(inspect.New(store, inspect.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}),
				Options{})
			if err != nil {
				t.Fatal(err)
			}
			h.board = board
			h.push("orders", "a", 0, "p")
			says(t, h.get("/"), "orders")
			says(t, h.get(tt.page), tt.shown)
			if !strings.Contains(log.String(), `error="no `+tt.name) ||
				!strings.Contains(log.String(), "panicking_test.go") {
				t.Errorf("the log does not say it with its stack: %s", log.String())
			}
		})
	}
}
