package engine_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/internal/engine"
	"github.com/skeinq/skein/ports"
)

func TestAnotherShardCountNamesWhoServesTheQueue(t *testing.T) {
	for name, c := range map[string]struct {
		serving int
		refuse  func(string) bool
		want    string
		not     []string
	}{
		"nobody": {0, only("nothing"), "permanent; to change it", []string{"served by"}},
		"two": {2, only("nothing"), "; it is served by node-0 (host h, pid 0), node-1 (host h, pid 1, version v1); " +
			"to change it",
			[]string{"gone", "elsewhere"}},
		"many":           {8, only("nothing"), "node-4 (host h, pid 4), 3 more; to change it", []string{"node-5"}},
		"is not told so": {2, only("Nodes"), "permanent; to change it", []string{"served by"}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				w.declare(3)
				w.announceAs("gone", queueName, time.Second)
				w.sleep(2 * time.Second)
				w.announceAs("elsewhere", "other", time.Hour)

				for i := range c.serving {
					n := ports.Node{
						Owner:  fmt.Sprint(i),
						Name:   fmt.Sprintf("node-%d", i),
						Host:   "h",
						PID:    i,
						Queues: []string{queueName},
					}
					if i == 1 {
						n.Version = "v1"
					}
					w.announceNode(n, time.Hour)
				}

				link := newLink(w.store.Open())
				link.spin.t, link.refuse = w.T, c.refuse
				run := engine.New(link, engine.Config{
					Queues:       []*engine.Queue{newQueue(queueName, each(succeed))},
					Owner:        "owner",
					Lanes:        1,
					PollInterval: poll,
					LeaseTTL:     ttl,
					Splitter:     core.LaneSplitter{},
					Scheduler:    core.Lag,
					Logger:       discard,
				}).Run

				err := run(w.Context())
				if err == nil || !strings.Contains(err.Error(), c.want) {
					w.Fatalf("Run: %v; want it to say %q", err, c.want)
				}
				for _, not := range c.not {
					if strings.Contains(err.Error(), not) {
						w.Errorf("Run: %v; it speaks of %q", err, not)
					}
				}
			})
		})
	}
}

// announceAs announces a node of a name that serves a queue.
func (w *world) announceAs(name, queue string, ttl time.Duration) {
	w.announceNode(ports.Node{Owner: name, Name: name, Queues: []string{queue}}, ttl)
}

func (w *world) announceNode(n ports.Node, ttl time.Duration) {
	w.Helper()
	if _, err := w.store.Announce(w.Context(), ports.AnnounceRequest{Node: n, TTL: ttl}); err != nil {
		w.Fatal(err)
	}
}
