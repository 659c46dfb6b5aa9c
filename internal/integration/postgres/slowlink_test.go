package postgres_test

import (
	"net"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/skeinq/skein/adapters/postgres"
	"github.com/skeinq/skein/internal/integration/kit"
	"github.com/skeinq/skein/internal/integration/testservers"
	"github.com/skeinq/skein/internal/tier"
)

// The second case has payloads that fit the buffers of no connection, so the server sends for as
// long as the link carries.
func TestPostgresPayloadsAreHandledThroughASlowLink(t *testing.T) {
	tier.Long(t, "carries 8 MiB at 1 MiB a second")
	t.Parallel()
	for name, c := range map[string]struct{ rate, ids, each, size int }{
		"claims longer than the TTL": {rate: 1 << 20, ids: 4, each: 2, size: 1 << 20},
		"large payloads":             {rate: 4 << 20, ids: 2, each: 1, size: 12 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := testservers.OwnPostgres(t, "fsync=off")
			must(t, postgres.Migrate(t.Context(), pool, postgres.MigrateOptions{}))
			server := pool.Config().ConnConfig
			link := testservers.SlowLink(t, net.JoinHostPort(server.Host, strconv.Itoa(int(server.Port))), c.rate)
			host, text, err := net.SplitHostPort(link)
			must(t, err)
			port, err := strconv.ParseUint(text, 10, 16)
			must(t, err)
			throughLink := kit.PoolLike(t, pool, func(c *pgxpool.Config) {
				c.ConnConfig.Host, c.ConnConfig.Port = host, uint16(port)
			})
			kit.HandleThroughSlowLink(t, postgres.New(pool, postgres.Options{}),
				postgres.New(throughLink, postgres.Options{}), c.ids, c.each, c.size)
		})
	}
}
