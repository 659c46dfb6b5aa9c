package redis_test

import (
	"testing"

	goredis "github.com/redis/go-redis/v9"

	"github.com/skeinq/skein/adapters/redis"
)

// The log has a store's address, and nothing secret.
func TestAStoreSaysWhereItIs(t *testing.T) {
	one := goredis.NewClient(&goredis.Options{Addr: "h:1", Username: "ann", Password: "secret", DB: 2})
	several := goredis.NewClusterClient(&goredis.ClusterOptions{Addrs: []string{"h:1", "h:2"}, Password: "secret"})
	for want, store := range map[string]*redis.Store{
		"redis h:1/2 prefix mine:":                            redis.New(one, redis.Options{Prefix: "mine:"}),
		"redis cluster h:1 h:2 prefix " + redis.DefaultPrefix: redis.New(several, redis.Options{}),
		"redis another client prefix x":                       redis.New(nil, redis.Options{Prefix: "x"}),
	} {
		if got := store.String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
