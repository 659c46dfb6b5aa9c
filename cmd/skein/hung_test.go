package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/internal/backends"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// hungCluster is a Cluster with a hanging master.
type hungCluster struct {
	*testing.T
	url string
}

// run runs the command, and checks its exit code and its standard error.
func (h hungCluster) run(want int, says string, args ...string) {
	h.Helper()
	var stdout, stderr bytes.Buffer
	p := process{
		stdin:   strings.NewReader(""),
		stdout:  &stdout,
		stderr:  &stderr,
		env:     func(string) string { return h.url },
		connect: backends.Connect,
	}
	ctx, stop := context.WithTimeout(h.Context(), testservers.Patience)
	defer stop()
	got := p.run(ctx, args)
	h.Logf("%v: %d: %s", args, got, stderr.String())
	if got != want || !strings.Contains(stderr.String(), says) || ctx.Err() != nil {
		h.Errorf("%v ended with %d, %v; want %d, and %q in:\n%s%s",
			args, got, ctx.Err(), want, says, stdout.String(), stderr.String())
	}
}

// Beside a hanging master the exit code reports how much could be done, whichever master it is: a
// part is not taken for all.
func TestExitCodesBesideAHungMaster(t *testing.T) {
	tier.Long(t, "waits for masters that hang, and for a Cluster to be well again")
	t.Parallel()
	cluster := testservers.OwnRedisCluster(t,
		"--cluster-require-full-coverage", "no", "--cluster-node-timeout", "2000").(*goredis.ClusterClient)

	h := hungCluster{t, clusterURL(cluster)}
	for i := range 30 {
		h.run(0, "", "job", "push", "orders", fmt.Sprint(i), "--payload", "x", "--shards", "12")
	}

	holder := func(key string) string {
		node, err := cluster.MasterForKey(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		return node.Options().Addr
	}

	for _, addr := range cluster.Options().Addrs {
		thaw := testservers.Freeze(t, testservers.RedisNode(t, addr))
		h.run(6, "checks warn or fail", "doctor")
		h.run(6, "answers "+addr, "check", "--timeout", "1m")
		h.run(1, "shards can't be reached", "job", "ls", "orders")
		h.run(1, "shards can't be reached", "stats", "orders")

		if addr == holder("skein:{orders/0}:m") {
			h.run(1, "orders/0 can't be reached", "queue", "history", "orders")
		} else {
			h.run(0, "", "queue", "history", "orders")
		}

		switch registry := addr == holder("skein:queues"); {
		case registry:
			h.run(5, "list of queues", "stats")
		default:
			h.run(1, "shards can't be reached", "stats")
		}

		if addr == holder("skein:{/nodes}:n") {
			h.run(1, "the servers are not known", "stats", "orders")
		}

		thaw()
		h.untilWell()
	}
}

// untilWell waits until the whole queue can be seen.
func (h hungCluster) untilWell() {
	h.Helper()
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		var out bytes.Buffer
		p := process{
			stdin:   strings.NewReader(""),
			stdout:  &out,
			stderr:  &out,
			env:     func(string) string { return h.url },
			connect: backends.Connect,
		}
		if p.run(context.Background(), []string{"stats"}) == 0 {
			return
		}
		if time.Since(began) > testservers.Patience {
			h.Fatalf("the Cluster is not well again: %s", out.String())
		}
	}
}
