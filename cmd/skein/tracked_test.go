package main

import (
	"context"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/skeinq/skein/adapters/memory"
	"github.com/skeinq/skein/ports"
)

// partlyAway is a store that can't reach what it has of one id.
type partlyAway struct {
	*memory.Store
	id string
}

func (s partlyAway) Find(ctx context.Context, r ports.FindRequest) (ports.Found, error) {
	if r.ID == s.id {
		return ports.Found{}, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	return s.Store.Find(ctx, r)
}

// One id that can't be reached hides no other, and the exit code shows that a part is missing.
func TestTrackedShowsWhatCanBeReached(t *testing.T) {
	store := partlyAway{memory.New(memory.Options{}), "b"}
	run := func(args ...string) (code int, stdout, stderr string) { return runOn(t, store, args...) }

	for _, args := range [][]string{
		{"job", "push", "orders", "a", "--payload", "x", "--shards", "1"},
		{"job", "track", "orders", "a"}, {"job", "track", "orders", "b"}, {"job", "track", "orders", "c"},
	} {
		if code, _, problems := run(args...); code != 0 {
			t.Fatalf("%v: %d, %s", args, code, problems)
		}
	}

	code, rows, problems := run("job", "tracked", "orders", "-o", "csv")
	if code != exitFailed || !strings.Contains(problems, errPart.Error()) {
		t.Errorf("it ended with %d, want %d: %s", code, exitFailed, problems)
	}

	var ids []string
	for line := range strings.Lines(rows) {
		id, rest, _ := strings.Cut(line, ",")
		ids = append(ids, id)
		if strings.Contains(rest, "unreached") != (id == "b") {
			t.Errorf("the row of %s: %s", id, rest)
		}
	}

	if got := strings.Join(ids, " "); got != "id a b c" && got != "a b c" {
		t.Errorf("the rows are of %q, want a, b and c", got)
	}
}
