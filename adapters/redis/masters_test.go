package redis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// The answer to an asking that began before the masters were last named is ignored, however late
// it comes, as from a server that hung during a failover. Waiting callers get the masters named
// since.
func TestALateAnswerNamesNoMasters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newNaming(0, "10.0.0.1:1")
		store := cluster.connect(t)
		first := func(all []goredis.UniversalClient, err error) string {
			if err != nil || len(all) == 0 {
				t.Fatalf("masters %v and error %v, want one", all, err)
			}
			return addressOf(all[0])
		}
		if got := first(store.masters(t.Context())); got != "10.0.0.1:1" {
			t.Errorf("at first %s", got)
		}
		old, after := store.cluster.last, make(chan struct{})
		store.cluster.ask(store.workers, func() ([]goredis.UniversalClient, error) { <-after; return old, nil })
		cluster.names.Store(&[]string{"10.0.0.2:1"})
		newer := store.cluster.ask(store.workers, func() ([]goredis.UniversalClient, error) {
			return mastersOf(context.WithoutCancel(t.Context()), store.client.(*goredis.ClusterClient))
		})
		<-newer.done
		cluster.takes = time.Minute
		go func() { time.Sleep(listPatience / 2); close(after) }()
		if got := first(store.masters(t.Context())); got != "10.0.0.2:1" {
			t.Errorf("once another had named the masters, a late answer named %s", got)
		}
	})
}

// A client without a ReadTimeout waits for a hanging server as long as it hangs. Once the largest
// number of askings have waited for too long, others take their place.
func TestMastersAreAskedForThoughAskingsHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cluster := newNaming(0, "10.0.0.1:1")
		store := cluster.connect(t)
		look := func() string {
			all, err := store.masters(t.Context())
			if err != nil || len(all) == 0 {
				t.Fatalf("masters %v and error %v, want one", all, err)
			}
			return addressOf(all[0])
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
