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
	if len(first) != queues || len(first["q7"]) != versions {
		t.Errorf("starts of %d queues, of %d versions in one; want %d and %d",
			len(first), len(first["q7"]), queues, versions)
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

// An error is that of the version that started last on one of its queues, shortly before it.
func TestAnErrorBeginsWithAVersion(t *testing.T) {
	first := time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)
	ago := func(before time.Duration) time.Time { return first.Add(-before) }
	for name, tt := range map[string]struct {
		of   starts
		want string
	}{
		"at once":             {starts{"orders": {"v2": ago(0)}}, "v2"},
		"just before the end": {starts{"orders": {"v2": ago(startExplains - 1)}}, "v2"},
		"too long ago":        {starts{"orders": {"v2": ago(startExplains)}}, ""},
		"after the error":     {starts{"orders": {"v2": ago(-1)}}, ""},
		"of another queue":    {starts{"mails": {"v2": ago(time.Minute)}}, ""},
		"the last of several": {
			starts{"orders": {
				"v1": ago(2 * time.Minute), "v3": ago(time.Minute), "v2": ago(3 * time.Minute),
			}}, "v3",
		},
		"of two queues": {
			starts{"bills": {"v3": ago(time.Minute)}, "orders": {"v1": ago(2 * time.Minute)}}, "v3",
		},
		"of two at once": {starts{"orders": {"v2": ago(time.Minute), "v1": ago(time.Minute)}}, "v2"},
	} {
		g := &inspect.ErrorGroup{First: first, Parts: []inspect.ErrorPart{{Queue: "bills"}, {Queue: "orders"}}}
		if got := tt.of.before(g); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
