package exchange

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// namingLink is a Cluster without servers, which takes its time to name its masters.
type namingLink struct {
	takes time.Duration
	names atomic.Pointer[[]string]
	asked atomic.Int32
}

func newNamingLink(takes time.Duration, masters ...string) *namingLink {
	n := &namingLink{takes: takes}
	n.names.Store(&masters)
	return n
}

// connect opens a link to it.
func (n *namingLink) connect(t *testing.T) *Link {
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
	return New(client, 0, 0)
}

// The answer to an asking that began before the masters were last named is ignored, however late
// it comes, as from a server that hung during a failover. Waiting callers get the masters named
// since.
func TestALateAnswerNamesNoMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newNamingLink(0, "10.0.0.1:1")
		l := cluster.connect(t)
		first := func(all []goredis.UniversalClient, err error) string {
			if err != nil || len(all) == 0 {
				t.Fatalf("masters %v and error %v, want one", all, err)
			}
			return all[0].(*goredis.Client).Options().Addr
		}

		if got := first(l.Masters(t.Context())); got != "10.0.0.1:1" {
			t.Errorf("at first %s", got)
		}

		old, after := l.cluster.last, make(chan struct{})
		l.cluster.ask(l.Workers, func() ([]goredis.UniversalClient, error) { <-after; return old, nil })
		cluster.names.Store(&[]string{"10.0.0.2:1"})
		newer := l.cluster.ask(l.Workers, func() ([]goredis.UniversalClient, error) {
			return listMasters(context.WithoutCancel(t.Context()), l.client.(*goredis.ClusterClient))
		})
		<-newer.done

		cluster.takes = time.Minute
		go func() { time.Sleep(ListPatience / 2); close(after) }()
		if got := first(l.Masters(t.Context())); got != "10.0.0.2:1" {
			t.Errorf("once another had named the masters, a late answer named %s", got)
		}
	})
}

// A client without a ReadTimeout waits for a hanging server as long as it hangs. Once the largest
// number of askings have waited for too long, others take their place.
func TestMastersAreAskedForThoughAskingsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newNamingLink(0, "10.0.0.1:1")
		l := cluster.connect(t)
		look := func() string {
			all, err := l.Masters(t.Context())
			if err != nil || len(all) == 0 {
				t.Fatalf("masters %v and error %v, want one", all, err)
			}
			return all[0].(*goredis.Client).Options().Addr
		}

		if got := look(); got != "10.0.0.1:1" {
			t.Errorf("at first %s", got)
		}

		cluster.takes = 30 * time.Minute
		before := cluster.asked.Load()
		for range 2 * mostAskings {
			look()
		}
		if n := cluster.asked.Load() - before; n != mostAskings {
			t.Errorf("%d askings go on at once, want %d", n, mostAskings)
		}

		synctest.Wait()
		cluster.takes = 0
		cluster.names.Store(&[]string{"10.0.0.2:1"})
		if got := look(); got != "10.0.0.1:1" {
			t.Errorf("while all askings hang the master is %s", got)
		}

		time.Sleep(2 * askingPatience)
		if got := look(); got != "10.0.0.2:1" {
			t.Errorf("once the askings have had their time the master is %s, want the new one", got)
		}
	})
}
