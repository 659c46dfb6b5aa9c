package redis

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

// What was asked before the masters were named last is no news, however late it is answered, as by a server that hung during a failover: who
// waits then has what was named since.
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
