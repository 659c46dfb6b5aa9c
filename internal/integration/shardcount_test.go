package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/skeinq/skein"
	"github.com/skeinq/skein/core"
	"github.com/skeinq/skein/inspect"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/ports"
	"github.com/skeinq/skein/ports/storekit"
)

// A new deployment with another shard count gets nothing done. Its error names the reason and the
// servers of the queue, and the old deployment continues.
func TestADeploymentWithAnotherShardCountIsRefused(t *testing.T) {
	t.Parallel()
	if core.ShardOf(movedID, oldShards) == core.ShardOf(movedID, newShards) {
		t.Fatal("the id would be in the same shard")
	}
	onEachStore(t, func(t *testing.T, store ports.ShardStore) {
		before, after := newDeployment(t, "old", oldShards, store), newDeployment(t, "new", newShards, store)
		stop := kit.Serve(t, before.server())
		defer stop()
		if err := before.push(movedID, "first"); err != nil {
			t.Fatal(err)
		}
		before.awaitHandled(1)
		awaitNode(t, store, "old")

		after.refused("push", after.push(movedID, "second"), oldShards)
		after.refused("second push", after.push("other", "second"), oldShards)
		err := after.server().Run(t.Context())
		after.refused("Run", err, oldShards)
		if who := fmt.Sprintf("pid %d", os.Getpid()); !strings.Contains(err.Error(), "old (host ") ||
			!strings.Contains(err.Error(), who) {
			t.Errorf("Run: %v; want it to name the server that serves the queue", err)
		}
		_, err = after.server().RunDue(t.Context())
		after.refused("RunDue", err, oldShards)
		kit.AwaitCounts(t, store, "orders", 0, 0, 0) // the handler's end precedes the store's
		holdsNothing(t, store, oldShards)

		if err := before.push(movedID, "second"); err != nil {
			t.Errorf("the old deployment pushes: %v", err)
		}
		want := []string{movedID + "[first]", movedID + "[second]"}
		if diff := cmp.Diff(want, before.awaitHandled(2)); diff != "" {
			t.Errorf("the old deployment has handled (-want +got):\n%s", diff)
		}
		if log := before.log.String(); strings.Count(log, "level=WARN") != strings.Count(log, `msg="needs attention"`) { // a warning that the test's server does not keep its data is expected
			t.Errorf("the old deployment is disturbed:\n%s", log)
		}
	})
}

func awaitNode(t *testing.T, store ports.ShardStore, name string) {
	t.Helper()
	for end := time.Now().Add(testservers.Patience); ; time.Sleep(countPoll) {
		nodes, err := inspect.New(store, inspect.Options{}).Nodes(t.Context())
		if err == nil && len(nodes) > 0 && nodes[0].Name == name {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the nodes are %+v, %v; want %s", nodes, err, name)
		}
	}
}

// gate holds the calls of a process up, as if it were stopped, while it is shut.
type gate struct {
	mu   sync.Mutex
	open chan struct{} // closed while calls pass
}

func (g *gate) shut() (reopen func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = make(chan struct{})
	return sync.OnceFunc(func() { close(g.open) })
}

func (g *gate) guard(store ports.ShardStore) ports.ShardStore {
	g.open = make(chan struct{})
	close(g.open)
	return storekit.Intercept(store,
		func(ctx context.Context, _ storekit.Call, next func(context.Context) error) error {
			g.mu.Lock()
			open := g.open
			g.mu.Unlock()
			<-open
			return next(ctx)
		})
}

// A process that was stopped for a while finds its queue forgotten and declared with another
// count. It can neither push nor handle, and its errors name the reason; the new one isn't
// disturbed.
func TestAProcessThatMissedANewShardCountIsRefused(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store ports.ShardStore) {
		var process gate
		before, after :=
			newDeployment(t, "old", oldShards, process.guard(store)), newDeployment(t, "new", newShards, store)
		before.ttl = 3 * time.Second // the test waits for its leases to end
		stop := kit.Serve(t, before.server())
		defer stop()
		if err := before.push(movedID, "first"); err != nil {
			t.Fatal(err)
		}
		before.awaitHandled(1)
		kit.AwaitCounts(t, store, "orders", 0, 0, 0)
		reopen := process.shut()
		defer reopen()
		awaitForgotten(t, store)
		if err := after.push("new", "first"); err != nil {
			t.Fatal(err)
		}
		reopen()

		before.refused("push", before.push(movedID, "second"), newShards)
		for index := range oldShards {
			_, err := store.Acquire(t.Context(), ports.AcquireRequest{
				Shard:      core.Shard{Queue: "orders", Index: index},
				Shards:     oldShards,
				Generation: 1,
				Owner:      "late",
				Attempt:    1,
				TTL:        time.Minute,
			})
			if !errors.Is(err, ports.ErrShardCountMismatch) {
				t.Errorf("Acquire of shard %d with the old count: %v; want ErrShardCountMismatch", index, err)
			}
		}
		awaitLog(t, before.log, "restart this server", "docs/guide/resharding.md",
			fmt.Sprintf("has %d shards", newShards))
		stopNew := kit.Serve(t, after.server())
		defer stopNew()
		after.awaitHandled(1)
		if err := after.push(movedID, "third"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"new[first]", movedID + "[third]"}, after.awaitHandled(2)); diff != "" {
			t.Errorf("the new deployment has handled (-want +got):\n%s", diff)
		}
		stop()
		for _, got := range before.awaitHandled(1) {
			if want := movedID + "[first]"; got != want {
				t.Errorf("the old deployment has handled %q, want only %q", got, want)
			}
		}
		kit.AwaitCounts(t, store, "orders", 0, 0, 0)
		holdsNothing(t, store, newShards)
	})
}

// awaitForgotten forgets the queue as soon as the leases of its server are over.
func awaitForgotten(t *testing.T, store ports.ShardStore) {
	t.Helper()
	for end := time.Now().Add(testservers.Patience); ; time.Sleep(countPoll) {
		err := inspect.New(store, inspect.Options{}).Forget(t.Context(), "orders")
		if err == nil {
			return
		}
		if !errors.Is(err, inspect.ErrLeaseHeld) || time.Now().After(end) {
			t.Fatalf("Forget: %v", err)
		}
	}
}

// awaitLog waits until a line of a log contains all of the texts.
func awaitLog(t *testing.T, log *kit.Log, says ...string) {
	t.Helper()
	for end := time.Now().Add(testservers.Patience); ; time.Sleep(countPoll) {
		for line := range strings.Lines(log.String()) {
			found := 0
			for _, want := range says {
				if strings.Contains(line, want) {
					found++
				}
			}
			if found == len(says) {
				return
			}
		}
		if time.Now().After(end) {
			t.Fatalf("no line of the log says %q:\n%s", says, log)
		}
	}
}

// The steps of docs/guide/resharding.md for a queue that keeps its name: the old deployment is
// emptied and stopped, the queue forgotten, and the new one started. Overlooked processes of the
// old one are refused.
func TestAQueueIsForgottenAndDeclaredWithAnotherShardCount(t *testing.T) {
	t.Parallel()
	onEachStore(t, func(t *testing.T, store ports.ShardStore) {
		inspector := inspect.New(store, inspect.Options{})
		before, after := newDeployment(t, "old", oldShards, store), newDeployment(t, "new", newShards, store)
		stop := kit.Serve(t, before.server())
		defer stop()
		for n := range 20 {
			if err := before.push(fmt.Sprint("order-", n), "old"); err != nil {
				t.Fatal(err)
			}
		}
		if err := before.queue.Push(t.Context(), before.client, "later", "old", skein.In(time.Hour)); err != nil {
			t.Fatal(err)
		}
		before.awaitHandled(20)

		// Nothing is lost by a step that comes too early.
		if err := inspector.Forget(t.Context(), "orders"); !errors.Is(err, inspect.ErrNotEmpty) {
			t.Errorf("Forget of a queue with a job: %v; want ErrNotEmpty", err)
		}
		if _, err := inspector.RunNow(t.Context(), "orders", inspect.AllJobs(nil, inspect.BulkOptions{})); err != nil {
			t.Fatal(err)
		}
		before.awaitHandled(21)
		kit.AwaitCounts(t, store, "orders", 0, 0, 0)
		if err := inspector.Forget(t.Context(), "orders"); !errors.Is(err, inspect.ErrLeaseHeld) {
			t.Errorf("Forget of a queue that is served: %v; want ErrLeaseHeld", err)
		}
		stop()
		if err := inspector.Forget(t.Context(), "orders"); err != nil {
			t.Fatalf("Forget: %v", err)
		}
		stopNew := kit.Serve(t, after.server())
		defer stopNew()
		if err := after.push(movedID, "new"); err != nil {
			t.Fatal(err)
		}
		after.awaitHandled(1)

		before.refused("push", before.push(movedID, "overlooked"), newShards)
		before.refused("Run", before.server().Run(t.Context()), newShards)
		kit.AwaitCounts(t, store, "orders", 0, 0, 0)
		holdsNothing(t, store, newShards)
	})
}
