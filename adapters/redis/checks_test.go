package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/ports"
)

// naming is a Cluster without servers, which takes its time to name its masters.
type naming struct {
	takes time.Duration
	names atomic.Pointer[[]string]
	asked atomic.Int32
}

func newNaming(takes time.Duration, masters ...string) *naming {
	n := &naming{takes: takes}
	n.names.Store(&masters)
	return n
}

// connect opens a store on it.
func (n *naming) connect(t *testing.T) *Store {
	t.Helper()
	client := goredis.NewClusterClient(&goredis.ClusterOptions{
		ClusterSlots: func(context.Context) ([]goredis.ClusterSlot, error) {
			n.asked.Add(1)
			time.Sleep(n.takes)
			var slots []goredis.ClusterSlot
			for i, name := range *n.names.Load() {
				slots = append(slots, goredis.ClusterSlot{Start: i, End: i, Nodes: []goredis.ClusterNode{{Addr: name}}})
			}
			return slots, nil
		},
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("nobody is there")
		},
		DialerRetries: 1,
		MaxRedirects:  -1,
	})

	t.Cleanup(func() {
		client.Close()
		time.Sleep(time.Hour) // in which background work ends
	})
	return New(client, Options{})
}

// serversOf returns the servers of a store's checks, but for those that are about all.
func serversOf(t *testing.T, store *Store) (servers []string) {
	t.Helper()
	rows, err := store.Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		if r.Server != "" {
			servers = append(servers, r.Server)
		}
	}
	return servers
}

// The answer of a Cluster that always takes long to name its masters is used all the same: the
// next look has its answer after a failover. However often it is asked meanwhile, only a few
// askings run at once.
func TestChecksHearOfAFailoverFromASlowCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newNaming(time.Minute, "10.0.0.1:1", "10.0.0.2:1")
		store := cluster.connect(t)
		if diff := cmp.Diff([]string{"10.0.0.1:1", "10.0.0.2:1"}, serversOf(t, store)); diff != "" {
			t.Errorf("at first (-want +got):\n%s", diff)
		}

		time.Sleep(time.Hour)
		cluster.names.Store(&[]string{"10.0.0.0:1", "10.0.0.2:1"})
		before := cluster.asked.Load()
		for range 50 {
			if diff := cmp.Diff([]string{"10.0.0.1:1", "10.0.0.2:1"}, serversOf(t, store)); diff != "" {
				t.Errorf("before the Cluster has answered (-want +got):\n%s", diff)
			}
		}
		if n := cluster.asked.Load() - before; n > 20 {
			t.Errorf("%d calls asked a Cluster that has not answered yet", n)
		}

		time.Sleep(2 * time.Minute)
		if diff := cmp.Diff([]string{"10.0.0.0:1", "10.0.0.2:1"}, serversOf(t, store)); diff != "" {
			t.Errorf("once it has answered (-want +got):\n%s", diff)
		}
	})
}

// replying is the server of a client that takes its time for each command, and returns no settings.
func replying(takes time.Duration) answers {
	return func(context.Context, goredis.Cmder) error {
		time.Sleep(takes)
		return nil
	}
}

// A check of the servers does not wait for a hanging one. It does wait for a slow one, if all are
// slow or it answers soon after another.
func TestChecksWaitForServersThatAreSlow(t *testing.T) {
	for name, tt := range map[string]struct {
		take []time.Duration
		full []bool
	}{
		"all are slow":  {[]time.Duration{time.Minute, time.Minute}, []bool{true, true}},
		"one is slower": {[]time.Duration{time.Millisecond, checkPatience / 10}, []bool{true, true}},
		"each slower than before": {
			[]time.Duration{0, checkPatience / 10, checkPatience * 3 / 20},
			[]bool{true, true, true},
		},
		"one hangs": {
			[]time.Duration{time.Hour, time.Millisecond, checkPatience / 10},
			[]bool{false, true, true},
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				servers := make([]goredis.UniversalClient, len(tt.take))
				for i, takes := range tt.take {
					client := goredis.NewClient(&goredis.Options{Addr: fmt.Sprintf("10.0.0.%d:1", i)})
					defer client.Close()
					client.AddHook(replying(takes))
					servers[i] = client
				}

				rows, err := New(nil, Options{}).lookAtAll(t.Context(), servers)
				if err != nil {
					t.Fatal(err)
				}

				counts := make([]int, len(servers))
				for _, r := range rows {
					counts[slices.IndexFunc(servers, func(s goredis.UniversalClient) bool {
						return serverAddress(s) == r.Server
					})]++
				}
				for i := range counts {
					if full := counts[i] > 1; full != tt.full[i] {
						t.Errorf("server %d, which takes %v for a reply, has %d rows", i, tt.take[i], counts[i])
					}
				}

				time.Sleep(24 * time.Hour) // in which the last reply comes
			})
		})
	}
}

// A Cluster without masters does not count as healthy.
func TestChecksSayThatAClusterHasNoMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rows, err := newNaming(0).connect(t).Check(t.Context())
		if err != nil || len(rows) != 1 || rows[0].Status != ports.CheckFail ||
			rows[0].Name != "cluster" || rows[0].Advice == "" {
			t.Errorf("rows %+v and error %v; want one row that fails", rows, err)
		}
	})
}
