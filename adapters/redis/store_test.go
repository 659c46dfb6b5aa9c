package redis

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"
)

func TestFewTurnsForOneServerAreBest(t *testing.T) {
	one := goredis.NewClient(&goredis.Options{Addr: "127.0.0.1:1"})
	defer one.Close()
	several := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"127.0.0.1:1"}})
	defer several.Close()
	for client, want := range map[goredis.UniversalClient]int{one: 8, several: 16} {
		if got := New(client, Options{}).MaxTurns(); got != want {
			t.Errorf("MaxTurns through %T = %d, want %d", client, got, want)
		}
	}
}
