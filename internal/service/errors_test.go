package service

import (
	"fmt"
	"testing"
	"time"

	"github.com/skeinq/skein/inspect"
)

// Each version of the servers of a queue has its first start, and a group is attributed to the last
// one before it.
func TestStartsOfVersions(t *testing.T) {
	began := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	const servers, versions, queues = 50, 5, 20
	var nodes []inspect.Node
	for n := range servers {
		node := inspect.Node{Version: fmt.Sprint("v", n%versions), StartedAt: began.Add(-time.Duration(n) * time.Minute)}
		for q := range queues {
			node.Queues = append(node.Queues, fmt.Sprint("q", q))
		}
		nodes = append(nodes, node)
	}

	first := startsOf(nodes)
	if len(first) != versions*queues {
		t.Errorf("%d starts, want %d", len(first), versions*queues)
	}
	for at, want := range map[time.Duration]string{
		time.Hour:                     "",   // all are too old
		-41 * time.Minute:             "v0", // the last of those that started 45 to 49 minutes before
		-45*time.Minute + time.Second: "v0",
		-45*time.Minute - time.Second: "v1",
		-49*time.Minute - time.Second: "",
	} {
		g := &inspect.ErrorGroup{First: began.Add(at), Parts: []inspect.ErrorPart{{Queue: "q7"}}}
		if got := first.before(g); got != want {
			t.Errorf("an error %v later is attributed to %q, want %q", at, got, want)
		}
		g.Parts[0].Queue = "others"
		if got := first.before(g); got != "" {
			t.Errorf("an error of a queue without servers is attributed to %q", got)
		}
	}
}
