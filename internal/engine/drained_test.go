package engine_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein/ports"
)

// An operator drains a node, which stays up without shards, and lets it work again.
func TestADrainedNodeGivesItsShardsUpUntilItIsToWorkAgain(t *testing.T) {
	inWorld(t, func(w *world) {
		events := &memberEvents{}
		observe := func(s *setup) { s.Observer = events }
		a := w.start(each(succeed), spread, shards(8), observe)
		w.sleep(poll)
		b := w.start(each(succeed), spread, shards(8))
		w.sleep(3 * memberTTL)
		w.wantOwners(even(8, a, b))
		w.drain(a, true)
		w.sleep(200 * time.Millisecond)
		w.wantOwners(even(8, b))
		w.drain(a, false)
		w.sleep(announceInterval + time.Second)
		w.wantOwners(even(8, a, b))
		b.stop()
		w.sleep(time.Second)
		w.wantOwners(even(8, a))
		want := []string{
			"node-1 joined", "gained 8", "node-2 joined", "lost 4", "node-1 drains", "lost 4", "node-1 resumed",
			"gained 4",
			"node-2 left", "gained 4",
		}
		if diff := cmp.Diff(want, events.heard()); diff != "" {
			w.Errorf("what the observer of node 1 heard (-want +got):\n%s", diff)
		}
	})
}

func (w *world) drain(n *node, drain bool) {
	w.Helper()
	if err := w.store.DrainNode(w.Context(), n.owner, drain); err != nil {
		w.Fatal(err)
	}
}

// memberEvents lists an observer's events of nodes and shards.
type memberEvents struct {
	ports.NopObserver
	mu   sync.Mutex
	list []string
}

func (e *memberEvents) add(event string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, event)
}

// heard lists the events so far.
func (e *memberEvents) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.list)
}

func (e *memberEvents) NodeChanged(event ports.NodeEvent) {
	e.add(event.Node.Name + " " + event.Change.String())
}

func (e *memberEvents) ShardsAssigned(event ports.AssignEvent) {
	if n := len(event.Gained); n > 0 {
		e.add(fmt.Sprintf("gained %d", n))
	}
	if n := len(event.Lost); n > 0 {
		e.add(fmt.Sprintf("lost %d", n))
	}
}
