package main

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"
)

// TestMain makes the test program a node where [startNode] has started it.
func TestMain(m *testing.M) {
	if os.Getenv(asNode) != "" {
		os.Exit(runNode(os.Stdin, os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

func TestNodesAreKilledAndStartedAgain(t *testing.T) {
	n := &nodes{count: 2, every: 100 * time.Millisecond, settings: settings{Store: "memory://", Queue: "idle", Lanes: 1}, stderr: os.Stderr}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- n.run(ctx) }()
	for n.kills.Load() < 4 {
		select {
		case err := <-ended:
			t.Fatalf("ended after %d kills: %v", n.kills.Load(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestNodeThatEndsByItselfEndsAll(t *testing.T) {
	for store, want := range map[string]string{
		"nosuch://": `unknown scheme "nosuch"`,
		"memory://": "-1 Lanes",
	} {
		t.Run(store, func(t *testing.T) {
			var stderr strings.Builder
			n := &nodes{count: 1, settings: settings{Store: store, Queue: "idle", Lanes: -1}, stderr: &stderr}
			err := n.run(t.Context())
			if err == nil || !strings.Contains(err.Error(), "node 1: exit status 1") || !strings.Contains(stderr.String(), want) {
				t.Errorf("%v; %s", err, &stderr)
			}
		})
	}
}

func TestANodeThatIsAskedToEndBeforeItHasBegunEndsWell(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, store := range []string{"memory://", "postgres://127.0.0.1:1/nothing"} {
		s := settings{Store: store, Queue: "idle", Lanes: 1}
		if err := s.serve(ctx, func(context.Context, string, []Event) error { return nil }); err != nil {
			t.Errorf("%s: %v", store, err)
		}
	}
}
